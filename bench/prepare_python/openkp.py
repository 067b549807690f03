"""OpenKP's preparation, as published. A first pass checks every page and keeps, for each url, the page with the most
valid key phrases. Then the words of a page become long tokens, and its elements global tokens with visual features."""
import json

import numpy

from store import Feature
from wordpiece_tokenizer import encode_words

LONG, GLOBAL, PHRASES = 4096, 512, 3
NUMBERS = 20  # visual features per element: ten of its own, ten of its parent
X, WIDTH, Y, HEIGHT, BLOCK, INLINE, HEADING, LEAF, FONT, BOLD = range(10)
PARENT = 10
FLAGS = [BLOCK, INLINE, HEADING, LEAF, BOLD, PARENT + HEADING, PARENT + LEAF, PARENT + BOLD]
COORDINATES = {"x_coords": X, "y_coords": Y, "widths": WIDTH, "heights": HEIGHT}


class Preparation:
    FEATURES = {
        "long_token_ids": Feature(LONG),
        "long_word_idx": Feature(LONG),
        "long_vdom_idx": Feature(LONG),
        "num_words": Feature(),
        "label_start_idx": Feature(PHRASES, pad=-1),
        "label_phrase_len": Feature(PHRASES, pad=-1),
        **{name: Feature(GLOBAL, type=numpy.float32) for name in COORDINATES},
        **{f"parent_{name}": Feature(GLOBAL, type=numpy.float32) for name in COORDINATES},
        "font_ids": Feature(GLOBAL),
        "parent_font_ids": Feature(GLOBAL),
        "indicators": Feature(GLOBAL),
    }

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def records(self, path):
        with open(path, encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    def encode(self, page):
        return encode_words(self.tokenizer, [page["text"].split(" ")])[0]

    def examples(self, path):
        chosen = {}  # url: (count of valid phrases, number of the page, the first phrases)
        for number, page in enumerate(self.records(path)):
            if is_valid(page, json.loads(page["VDOM"])):
                phrases = valid_phrases(page)
                best = chosen.get(page["url"])
                if phrases and (best is None or len(phrases) > best[0]):
                    chosen[page["url"]] = (len(phrases), number, phrases[:PHRASES])
        for number, page in enumerate(self.records(path)):
            best = chosen.get(page["url"])
            if best is not None and best[1] == number:
                example = self.example(page, best[2])
                if example is not None:
                    yield example

    def example(self, page, phrases):
        """The features, or None if the kept part of the page contains no key phrase."""
        elements = json.loads(page["VDOM"])
        encoding = self.encode(page)
        ids, words = numpy.array(encoding.ids, numpy.int32), numpy.array(encoding.word_ids, numpy.int32)
        ends = numpy.array([element["end_idx"] for element in elements])  # in words
        token_ends = numpy.searchsorted(words, ends)
        # The page is truncated before the first element that does not fit.
        kept = min(int(numpy.searchsorted(token_ends, LONG, side="right")), GLOBAL)
        if kept == 0 or ends[kept - 1] > LONG:
            return None
        tokens = int(token_ends[kept - 1])
        starts, lengths = labels([element["text"] for element in elements[:kept]], phrases)
        if not 1 <= len(starts) <= PHRASES:
            return None
        boxes = numpy.array([element["feature"] for element in elements[:kept]], numpy.float64)
        example = {
            "long_token_ids": ids[:tokens],
            "long_word_idx": words[:tokens],
            "long_vdom_idx": numpy.searchsorted(ends, words[:tokens], side="right"),
            "num_words": int(ends[kept - 1]),
            "label_start_idx": starts,
            "label_phrase_len": lengths,
            "font_ids": font_ids(boxes[:, FONT]),
            "parent_font_ids": font_ids(boxes[:, PARENT + FONT]),
            "indicators": (boxes[:, FLAGS] != 0) @ (1 << numpy.arange(len(FLAGS))),
        }
        for name, column in COORDINATES.items():
            example[name] = boxes[:, column]
            example["parent_" + name] = boxes[:, PARENT + column]
        return example if tokens else None


def is_valid(page, elements):
    """Whether the elements cover the words of the page without gaps and each has twenty valid numbers."""
    words = page["text"].split(" ")
    if not elements:
        return False
    boxes = [element["feature"] for element in elements]
    if any(len(box) != NUMBERS for box in boxes):
        return False
    boxes = numpy.array(boxes, numpy.float64)
    flags = boxes[:, FLAGS]
    if not numpy.isfinite(boxes).all() or not ((flags == 0) | (flags == 1)).all():
        return False
    end = 0
    for element in elements:
        start, last = element["start_idx"], element["end_idx"]
        if start != end or last < start or element["text"] != " ".join(words[start:last]):
            return False
        if element["Id"] != elements[0]["Id"]:
            return False
        end = last
    return end == len(words)


def valid_phrases(page):
    """Key phrases that occur in the page's text as whole words."""
    text = page["text"].lower()
    found = []
    for phrase in page["KeyPhrases"]:
        joined = " ".join(word for word in map(str.strip, phrase) if word)
        if joined and occurs(joined, text):
            found.append(joined)
    return found


def occurs(phrase, lower_text):
    lower, at = phrase.lower(), -1
    while (at := lower_text.find(lower, at + 1)) >= 0:
        end = at + len(phrase)
        if (at == 0 or lower_text[at - 1] == " ") and (end >= len(lower_text) or lower_text[end] == " "):
            return True
    return False


def labels(texts, phrases):
    """For each phrase the first word and the number of words of its first occurrence inside an element."""
    missing = sorted({f" {phrase.lower()} " for phrase in phrases})
    starts, lengths, word = [], [], 0
    for text in texts:
        if not missing:
            break
        padded = f" {text.lower()} "
        for key in [key for key in missing if key in padded]:
            missing.remove(key)
            starts.append(word + padded.count(" ", 0, padded.index(key)))
            lengths.append(key.count(" ") - 1)
        word += text.count(" ") + 1
    return starts, lengths


def font_ids(sizes):
    """Classes of font sizes, 0 … 23."""
    pixels = numpy.rint(sizes)  # rounds half to even
    wide = numpy.minimum(18 + (pixels - 25) // 5, 23)
    return numpy.where(pixels > 24, wide, numpy.where(pixels > 8, pixels - 7, pixels > 0)).astype(numpy.int32)
