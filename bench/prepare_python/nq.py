"""Natural Questions' preparation for training, from the original format, as published: the word pieces of a page's
top-level candidates are cut into overlapping windows, each labelled by the page's first annotation."""
import gzip
import json

import numpy

from store import Feature
from wordpiece_tokenizer import encode_words

LONG, GLOBAL, STRIDE, QUESTION_PIECES = 4096, 230, 2048, 32
SENTENCE, QUESTION = 1, 35  # ids of global tokens
SENTENCE_TYPE, CLS_TYPE, QUESTION_TYPE = 0, 1, 2
NULL, YES, NO, LONG_ANSWER, SHORT_ANSWER = range(5)


class Preparation:
    FEATURES = {
        "unique_ids": Feature(type=numpy.int64),
        "token_ids": Feature(LONG),
        "candidate_ids": Feature(LONG, pad=-1),
        "token_pos": Feature(LONG, pad=-1),
        "sentence_ids": Feature(LONG),
        "global_token_ids": Feature(GLOBAL),
        "global_type_id": Feature(GLOBAL),
        "global_candidate_ids": Feature(GLOBAL, pad=-1),
        "global_token_pos_start": Feature(GLOBAL),
        "global_token_pos_end": Feature(GLOBAL),
        "sa_start": Feature(),
        "sa_end": Feature(),
        "la_start": Feature(),
        "la_end": Feature(),
        "la_global": Feature(),
        "answer_type": Feature(),
    }

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        pieces = ("[CLS]", "[SEP]", "[unused102]", "[unused103]")
        self.cls, self.sep, self.html_open, self.html_close = map(tokenizer.token_to_id, pieces)

    def records(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    def encode(self, record):
        """Encodings of the question and of the text tokens of the top-level candidates."""
        tokens = record["document_tokens"]
        kept = [token["token"] for _, start, end in top_level(record) for token in tokens[start:end]
                if not token["html_token"]]
        return encode_words(self.tokenizer, [record["question_text"].split(), kept])

    def examples(self, path):
        for record in self.records(path):
            question, page = self.encode(record)
            head = [self.cls, *question.ids[:QUESTION_PIECES], self.sep]
            label = label_of(record)
            yield from windows(record["example_id"], head, self.sep, self.pieces(record, page), label)

    def pieces(self, record, page):
        """Word pieces of the top-level candidates; for each piece its candidate and its token position in the
        document."""
        tokens = record["document_tokens"]
        spans = top_level(record)
        positions = numpy.concatenate([numpy.arange(start, end) for _, start, end in spans] or [numpy.empty(0, int)])
        candidates = numpy.repeat([c for c, _, _ in spans], [end - start for _, start, end in spans])
        kept = [token for _, start, end in spans for token in tokens[start:end]]
        is_html = numpy.array([token["html_token"] for token in kept], bool)
        html_ids = [self.html_close if token["token"].startswith("</") else self.html_open
                    for token in kept if token["html_token"]]
        counts = numpy.ones(len(kept), int)
        counts[~is_html] = numpy.bincount(numpy.array(page.word_ids, int), minlength=len(kept) - len(html_ids))
        html_pieces = numpy.repeat(is_html, counts)
        ids = numpy.empty(len(html_pieces), numpy.int32)
        ids[html_pieces] = html_ids
        ids[~html_pieces] = page.ids
        return ids, numpy.repeat(candidates, counts), numpy.repeat(positions, counts)


def top_level(record):
    """(number, first token, last token + 1) of every candidate that is not nested in another one."""
    return [(number, candidate["start_token"], candidate["end_token"])
            for number, candidate in enumerate(record["long_answer_candidates"]) if candidate["top_level"]]


def label_of(record):
    """Long span, short span (start, end; -1: none), answer type."""
    if not record["annotations"]:
        return (-1, -1), (-1, -1), -1
    annotation = record["annotations"][0]
    answer, shorts = annotation["long_answer"], annotation["short_answers"]
    long = (answer["start_token"], answer["end_token"])
    short = (shorts[0]["start_token"], shorts[-1]["end_token"]) if shorts else (-1, -1)
    if annotation["yes_no_answer"] in ("YES", "NO"):
        kind = YES if annotation["yes_no_answer"] == "YES" else NO
    elif shorts:
        kind = SHORT_ANSWER
    else:
        kind = LONG_ANSWER if min(long) >= 0 else NULL
    return long, short, kind


def windows(example_id, head, sep, page, label):
    """Examples, one per window of the page's pieces. All windows are kept, as with the published sampling rates."""
    ids, candidates, positions = page
    numbers, begins = numpy.unique(candidates, return_index=True)
    ends = numpy.append(begins, len(candidates))[1:] - 1
    extents = dict(zip(numbers.tolist(), zip(positions[begins].tolist(), positions[ends].tolist())))
    room = LONG - len(head) - 1
    count = 1 + -(-max(len(ids) - room, 0) // STRIDE)
    none = numpy.full(len(head), -1)
    for start in range(0, count * STRIDE, STRIDE):
        part = slice(start, start + room)
        window = {
            "unique_ids": example_id,
            "token_ids": numpy.concatenate([head, ids[part], [sep]]),
            "candidate_ids": numpy.concatenate([none, candidates[part], [-1]]),
            "token_pos": numpy.concatenate([none, positions[part], [-1]]),
        }
        add_globals(window, len(head), extents)
        add_labels(window, label)
        yield window


def add_globals(window, head, extents):
    """One global token per token of the head (CLS, question, SEP), then one at each change of candidate, up to the
    limit."""
    candidates = window["candidate_ids"]
    changes = numpy.diff(candidates[head - 1:]) != 0
    found = candidates[head:][changes][: GLOBAL - head].tolist()
    spans = [extents.get(candidate, (0, 0)) for candidate in found]
    window["sentence_ids"] = numpy.append(numpy.arange(head), numpy.minimum(head - 1 + changes.cumsum(), GLOBAL - 1))
    window["global_token_ids"] = [window["token_ids"][0]] + [QUESTION] * (head - 1) + [
        SENTENCE if candidate >= 0 else 0 for candidate in found]
    window["global_type_id"] = [CLS_TYPE] + [QUESTION_TYPE] * (head - 1) + [SENTENCE_TYPE] * len(found)
    window["global_candidate_ids"] = [-1] * head + found
    window["global_token_pos_start"] = [0] * head + [start for start, _ in spans]
    window["global_token_pos_end"] = [0] * head + [end for _, end in spans]


def add_labels(window, label):
    """Positions of the answers' first and last pieces in the window; 0 if they are outside it."""
    (long_start, long_end), (short_start, short_end), kind = label
    positions = window["token_pos"]
    for name, token in (("la_start", long_start), ("sa_start", short_start)):
        found = numpy.flatnonzero(positions == token)
        window[name] = int(found[0]) if token >= 0 and len(found) else 0
    for name, token in (("la_end", long_end - 1), ("sa_end", short_end - 1)):
        found = numpy.flatnonzero(positions == token)
        gaps = numpy.flatnonzero(numpy.diff(found) > 1)  # ends at the first contiguous run
        window[name] = int(found[gaps[0] if len(gaps) else -1]) if token >= 0 and len(found) else 0
    if kind == SHORT_ANSWER and window["sa_start"] == window["sa_end"] == 0:
        kind = NULL
    if kind == LONG_ANSWER and window["la_start"] == window["la_end"] == 0:
        kind = NULL
    window["answer_type"] = kind
    has_long = window["la_start"] or window["la_end"]
    window["la_global"] = window["sentence_ids"][window["la_start"]] if has_long else 0
