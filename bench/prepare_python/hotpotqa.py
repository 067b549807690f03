"""HotpotQA's preparation for training, with WordPiece, as published: the text becomes long tokens, and each paragraph
and sentence gets a global token. The answer is searched for in the supporting sentences and the titles of their
paragraphs."""
import json
import re

import numpy

from store import Feature
from wordpiece_tokenizer import encode_words

LONG, GLOBAL = 4096, 256
CLS, SENTENCE, QUESTION, PARAGRAPH = 101, 1, 3, 5
SENTENCE_TYPE, TITLE_TYPE, QUESTION_TYPE = 1, 2, 3
SPAN, YES, NO = 0, 1, 2
UNIGRAM = re.compile("[^ \t\r\n\u202f]+")


class Preparation:
    FEATURES = {
        "long_token_ids": Feature(LONG),
        "long_sentence_ids": Feature(LONG, pad=-1),
        "long_paragraph_ids": Feature(LONG, pad=-1),
        "long_paragraph_breakpoints": Feature(LONG),
        "long_token_type_ids": Feature(LONG),
        "long_tokens_to_unigrams": Feature(LONG, pad=-1),
        "global_token_ids": Feature(GLOBAL),
        "global_paragraph_breakpoints": Feature(GLOBAL),
        "global_token_type_ids": Feature(GLOBAL),
        "global_paragraph_ids": Feature(GLOBAL, pad=-1),
        "global_sentence_ids": Feature(GLOBAL, pad=-1),
        "supporting_facts": Feature(GLOBAL),
        "answer_types": Feature(),
        "answer_begins": Feature(),
        "answer_ends": Feature(),
    }

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def records(self, path):
        with open(path, encoding="utf-8") as file:
            yield from json.load(file)

    def encode(self, record):
        """Encodings of the question, then of the title and the sentences of every paragraph; words are unigrams."""
        texts = [record["question"]]
        for title, sentences in record["context"]:
            texts += [title, *sentences]
        return encode_words(self.tokenizer, [UNIGRAM.findall(text) for text in texts])

    def examples(self, path):
        for record in self.records(path):
            example = Layout(record, iter(self.encode(record)), self.tokenizer).example()
            if example is not None:
                yield example


class Layout:
    def __init__(self, record, encodings, tokenizer):
        self.record, self.encodings, self.tokenizer = record, encodings, tokenizer
        self.answer = record.get("answer", "")
        self.answer_ids = None  # set once the answer is found
        self.spans = []
        self.long = {name: [] for name in ("ids", "sentences", "paragraphs", "breakpoints", "types", "unigrams")}
        self.globals = {name: [] for name in ("ids", "breakpoints", "paragraphs", "sentences", "facts")}

    def example(self):
        """The features, or None if the example has no supporting fact or no usable answer."""
        facts = {}  # title: sentences
        for title, sentence in self.record.get("supporting_facts", ()):
            facts.setdefault(title, set()).add(sentence)
        self.add_long([CLS], -1, -1, SENTENCE_TYPE, [-1])
        self.add_global(CLS)
        self.end_segment()
        self.add_question()
        for number, (title, sentences) in enumerate(self.record["context"]):
            self.add_paragraph(number, title, sentences, facts.get(title))
        self.spans.sort(key=lambda span: span[1])
        usable = bool(self.spans) and self.spans[0][1] < LONG
        if not any(self.globals["facts"]) or not (usable or self.answer in ("yes", "no")):
            return None
        begin, end = self.spans[0] if usable else (0, 0)
        return {
            "long_token_ids": self.long["ids"],
            "long_sentence_ids": self.long["sentences"],
            "long_paragraph_ids": self.long["paragraphs"],
            "long_paragraph_breakpoints": self.long["breakpoints"],
            "long_token_type_ids": self.long["types"],
            "long_tokens_to_unigrams": self.long["unigrams"],
            "global_token_ids": self.globals["ids"],
            "global_paragraph_breakpoints": self.globals["breakpoints"],
            "global_token_type_ids": numpy.zeros(len(self.globals["ids"]), numpy.int32),
            "global_paragraph_ids": self.globals["paragraphs"],
            "global_sentence_ids": self.globals["sentences"],
            "supporting_facts": self.globals["facts"],
            "answer_types": {"yes": YES, "no": NO}.get(self.answer, SPAN),
            "answer_begins": begin,
            "answer_ends": end,
        }

    def add_question(self):
        for piece in next(self.encodings).ids:
            if self.fits(1):
                self.add_long([piece], len(self.globals["ids"]), -1, QUESTION_TYPE, [-1])
                self.add_global(QUESTION)
        self.end_segment()

    def add_paragraph(self, number, title, sentences, facts):
        place = -1
        if len(self.globals["ids"]) < GLOBAL:
            place = len(self.globals["ids"])
            self.add_global(PARAGRAPH, number, fact=facts is not None)
        self.add_text(title, number, place, TITLE_TYPE, -1, facts is not None)
        added = 0  # sentences added; as in the published code, a skipped one is not counted
        for sentence, text in enumerate(sentences):
            added += self.add_text(text, number, place, SENTENCE_TYPE, added, facts is not None and sentence in facts)
        self.end_segment()

    def add_text(self, text, paragraph, place, kind, sentence, fact):
        encoding = next(self.encodings)
        ids = encoding.ids
        if fact and self.answer and self.answer in text:
            first = len(self.long["ids"])
            self.spans += [(first + begin, first + end) for begin, end in self.occurrences(text, encoding)]
        if not self.fits(len(ids)):
            return False
        self.add_long(ids, len(self.globals["ids"]), place, kind, encoding.word_ids)
        self.add_global(SENTENCE, paragraph, sentence, fact)
        return True

    def occurrences(self, text, encoding):
        """First and last token of every occurrence of the answer."""
        ids, words = encoding.ids, encoding.word_ids
        unigrams = [match.start() for match in UNIGRAM.finditer(text)]
        starts = numpy.searchsorted(words, numpy.arange(len(unigrams) + 1))  # first token of every unigram, and the end
        if self.answer_ids is None:
            self.answer_ids = encode_words(self.tokenizer, [UNIGRAM.findall(self.answer)])[0].ids
        length = len(self.answer_ids)
        found = []
        for match in re.finditer(re.escape(self.answer), text):
            first, last = numpy.searchsorted(unigrams, [match.start(), match.end() - 1], side="right") - 1
            begin, end = int(starts[first if first >= 0 else len(unigrams) - 1]), int(starts[last + 1]) - 1
            for exact in range(begin, end - length + 2):
                if length and ids[exact:exact + length] == self.answer_ids:
                    begin, end = exact, exact + length - 1
                    break
            found.append((begin, end))
        return found

    def fits(self, tokens):
        return len(self.long["ids"]) + tokens <= LONG and len(self.globals["ids"]) < GLOBAL

    def add_long(self, ids, sentence, paragraph, kind, unigrams):
        count, long = len(ids), self.long
        long["ids"] += ids
        long["sentences"] += [sentence] * count
        long["paragraphs"] += [paragraph] * count
        long["breakpoints"] += [0] * count
        long["types"] += [kind] * count
        long["unigrams"] += unigrams

    def add_global(self, token, paragraph=-1, sentence=-1, fact=False):
        self.globals["ids"].append(token)
        self.globals["breakpoints"].append(0)
        self.globals["paragraphs"].append(paragraph)
        self.globals["sentences"].append(sentence)
        self.globals["facts"].append(int(fact))

    def end_segment(self):
        self.long["breakpoints"][-1] = 1
        self.globals["breakpoints"][-1] = 1
