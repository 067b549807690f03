"""SQuAD's preparation for training, as published (run_squad): splits a text into words and pieces, locates the answer's
pieces, makes overlapping windows and marks for each piece the window in which it has most context. As in the published
code, a text is tokenised again for each of its questions."""
import json

import numpy

from store import Feature
from wordpiece_tokenizer import encode_words

LENGTH, STRIDE, QUESTION_PIECES = 384, 128, 64


class Preparation:
    OPTIONS = []
    FEATURES = {
        "record_index": Feature(type=numpy.int64),
        "window_index": Feature(),
        "token_ids": Feature(LENGTH),
        "segment_ids": Feature(LENGTH),
        "token_words": Feature(LENGTH, pad=-1),
        "max_context": Feature(LENGTH),
        "first_word": Feature(),
        "start_position": Feature(),
        "end_position": Feature(),
    }

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.cls, self.sep = (tokenizer.token_to_id(piece) for piece in ("[CLS]", "[SEP]"))

    def records(self, path):
        """(context, question) of every question."""
        with open(path, encoding="utf-8") as file:
            for article in json.load(file)["data"]:
                for paragraph in article["paragraphs"]:
                    for question in paragraph["qas"]:
                        yield paragraph["context"], question

    def encode(self, record):
        """Encodings of the question, of the words of the text, and of the answer."""
        context, question = record
        words = words_of(context)[0]
        return encode_words(self.tokenizer, [[question["question"]], words, [question["answers"][0]["text"]]])

    def examples(self, path):
        for index, (context, question) in enumerate(self.records(path)):
            words, word_of = words_of(context)
            answer = question["answers"][0]
            start = answer["answer_start"]
            first, last = word_of[start], word_of[start + len(answer["text"]) - 1]
            if " ".join(answer["text"].split()) not in " ".join(words[first:last + 1]):
                continue
            asked, text, wanted = encode_words(self.tokenizer, [[question["question"]], words, [answer["text"]]])
            target = answer_pieces(text, first, last, wanted.ids)
            head = [self.cls, *asked.ids[:QUESTION_PIECES], self.sep]
            yield from self.windows(index, head, text, target)

    def windows(self, index, head, text, target):
        ids, words = text.ids, text.word_ids
        room, offset = LENGTH - len(head) - 1, len(head)
        spans, start = [], 0
        while start < len(ids):
            length = min(len(ids) - start, room)
            spans.append((start, length))
            if start + length == len(ids):
                break
            start += min(length, STRIDE)
        best = best_windows(spans, len(ids))
        for number, (start, length) in enumerate(spans):
            inside = start <= target[0] and target[1] < start + length
            yield {
                "record_index": index,
                "window_index": number,
                "token_ids": [*head, *ids[start:start + length], self.sep],
                "segment_ids": [0] * offset + [1] * (length + 1),
                "token_words": [-1] * offset + words[start:start + length] + [-1],
                "max_context": [0] * offset + (best[start:start + length] == number).tolist() + [0],
                "first_word": words[start],
                "start_position": target[0] - start + offset if inside else 0,
                "end_position": target[1] - start + offset if inside else 0,
            }


def words_of(context):
    """The words of a text, separated by blanks, and the word number of every character."""
    words, word_of, inside = [], [], False
    for c in context:
        if c in " \t\r\n\u202f":
            inside = False
        elif inside:
            words[-1] += c
        else:
            words.append(c)
            inside = True
        word_of.append(len(words) - 1)
    return words, word_of


def answer_pieces(text, first, last, wanted):
    """First and last piece of the answer: the first run of pieces within the words first … last that equals the
    answer's pieces, otherwise all pieces of these words."""
    numbers = numpy.array(text.word_ids)
    begin, end = numpy.searchsorted(numbers, [first, last + 1]).tolist()
    for at in range(begin, end - len(wanted) + 1):
        if text.ids[at:at + len(wanted)] == wanted:
            return at, at + len(wanted) - 1
    return begin, end - 1


def best_windows(spans, pieces):
    """For every piece the window with the largest min(left context, right context) + 0.01·length."""
    if len(spans) == 1:
        return numpy.zeros(pieces, int)
    scores = numpy.full((len(spans), pieces), -1.0)
    for row, (start, length) in zip(scores, spans):
        places = numpy.arange(length)
        row[start:start + length] = numpy.minimum(places, length - 1 - places) + 0.01 * length
    return scores.argmax(axis=0)
