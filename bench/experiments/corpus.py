"""Texts for pre-training experiments: WikiText markup removed, one paragraph per line, an empty line between
documents."""
import gzip
import pathlib
import re


def documents(path):
    """Documents of a text file, each a list of paragraphs. In WikiText each article is a document and headings are left
    out; in other texts empty lines separate documents."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    article = re.compile(r"^= [^=].* =$")
    if not any(article.match(line) for line in lines):
        return split_at(lines, lambda line: not line)
    found = split_at(lines, article.match)
    return [[clean(line) for line in document if line and not line.startswith("= ")] for document in found]


def split_at(lines, ends):
    """Splits the lines at those for which `ends` is true. Separators, empty lines and empty runs are left out."""
    runs = [[]]
    for line in lines:
        if ends(line):
            runs.append([])
        elif line:
            runs[-1].append(line)
    return [run for run in runs if run]


def clean(line):
    """Reverts WikiText's markup: ` @-@ `, ` @,@ ` and ` @.@ ` within words, and `<unk>` (becomes [UNK])."""
    for mark in "-,.":
        line = line.replace(f" @{mark}@ ", mark)
    return line.replace("<unk>", "[UNK]")


def write_corpus(paths, target):
    """Writes all documents of the files as plain text, an empty line after each; returns the numbers of documents and
    words."""
    texts = [document for path in paths for document in documents(pathlib.Path(path)) if document]
    target.write_text("".join("\n".join(text) + "\n\n" for text in texts), encoding="utf-8")
    return len(texts), sum(len(line.split()) for text in texts for line in text)
