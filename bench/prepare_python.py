#!/usr/bin/env python3
"""`etc prepare` next to the least that a preparation in Python does to the same records, one thread each, taking turns;
both by processor time.

  bench/prepare_python.py --task openkp --input train.jsonl --vocab vocab.txt [--turns 3] [--program build/cpu/etc]

The Python side uses the package `tokenizers` (pip install tokenizers numpy) as its users do: a record's texts go into
one call. It parses the record, makes token ids of every text the task reads, and puts ids and the number of the sentence,
word or element each belongs to into numpy arrays. What a published preparation does besides (labels, answers found in
the text, windows, links, sentence boundaries, checks, a file) is left out, so the ratio is a lower bound. `etc prepare`
does all of it.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

# The texts of a record. Words that are cut into pieces one by one come as a list of words.
TEXTS = {
    "wikihop": lambda r: [r["query"].replace("_", " "), *r["candidates"], *r["supports"]],
    "hotpotqa": lambda r: [r["question"], *(text for title, sentences in r["context"] for text in [title, *sentences])],
    "nq": lambda r: [r["question_text"].split(" "),
                     [token["token"] for token in r["document_tokens"] if not token["html_token"]]],
    "openkp": lambda r: [r["text"].split(" ")],
}


def records(task, path):
    with open(path, encoding="utf-8") as file:
        if task in ("wikihop", "hotpotqa"):
            yield from json.load(file)
        else:
            for line in file:
                yield json.loads(line)


def features(task, record, tokenizer, numpy):
    """Token ids, and the number of the text (or word) of each."""
    texts = TEXTS[task](record)
    if isinstance(texts[0], list):
        encoded = tokenizer.encode_batch(texts, is_pretokenized=True, add_special_tokens=False)
        places = [word for text in encoded for word in text.word_ids]
    else:
        encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
        places = [number for number, text in enumerate(encoded) for _ in text.ids]
    ids = [piece for text in encoded for piece in text.ids]
    arrays = [numpy.asarray(ids, dtype=numpy.int32), numpy.asarray(places, dtype=numpy.int32)]
    if task == "openkp":  # every word of an element has its features
        elements = json.loads(record["VDOM"])
        arrays.append(numpy.asarray([element["feature"] for element in elements], dtype=numpy.float32))
    return arrays


def in_python(given, tokenizer, numpy):
    start = time.process_time()
    count = sum(1 for record in records(given.task, given.input) if features(given.task, record, tokenizer, numpy))
    return count, time.process_time() - start


def with_etc(given, folder):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    start = used()
    command = [given.program, "prepare", "--task", given.task, "--split", "train", "--input", given.input, "--vocab",
               given.vocab, "--threads", "1", "--max-rejects", "1000000", "--output", os.path.join(folder, "out.h5")]
    subprocess.run(command, check=True, capture_output=True)
    return used() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", required=True, choices=sorted(TEXTS))
    parser.add_argument("--input", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--program", default="build/cpu/etc")
    given = parser.parse_args()
    try:
        import numpy
        from tokenizers import BertWordPieceTokenizer
    except ImportError as missing:
        print(f"prepare_python: skipped, {missing} (pip install tokenizers numpy)")
        return 0
    tokenizer = BertWordPieceTokenizer(given.vocab, lowercase=True)
    megabytes = os.path.getsize(given.input) / 1e6
    python, etc = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.turns):
            count, seconds = in_python(given, tokenizer, numpy)
            python.append(seconds)
            etc.append(with_etc(given, folder))
    print(f"{given.task}: {count} records, {megabytes:.1f} MB; medians of {given.turns} turns, one thread, processor time")
    for name, times in (("Python, tokenizers", python), ("etc prepare", etc)):
        seconds = statistics.median(times)
        print(f"{name:20} {count / seconds:9.0f} records/s {megabytes / seconds:7.2f} MB/s")
    ratios = sorted(p / e for p, e in zip(python, etc))
    print(f"etc prepare is {statistics.median(ratios):.1f} times as fast ({ratios[0]:.1f} to {ratios[-1]:.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
