"""GLUE's preparation, as published (run_classifier): reads rows of a tab-separated file; an example is "CLS a SEP b
SEP" of at most 128 pieces and the number of the label. The header determines the data set."""
import numpy

from store import Feature
from wordpiece_tokenizer import encode_words

LENGTH = 128
NUMBERS = ["0", "1"]
ENTAILMENT = ["entailment", "not_entailment"]
# name: (columns of the texts, column of the label, labels in order; None: the label is a number)
SETS = {
    "sst-2": (["sentence"], "label", NUMBERS),
    "mrpc": (["#1 String", "#2 String"], "Quality", NUMBERS),
    "rte": (["sentence1", "sentence2"], "label", ENTAILMENT),
    "qnli": (["question", "sentence"], "label", ENTAILMENT),
    "qqp": (["question1", "question2"], "is_duplicate", NUMBERS),
    "sts-b": (["sentence1", "sentence2"], "score", None),
}


class Preparation:
    FEATURES = {
        "record_index": Feature(type=numpy.int64),
        "token_ids": Feature(LENGTH),
        "segment_ids": Feature(LENGTH),
        "label": Feature(pad=-1),
        "score": Feature(type=numpy.float32),
    }

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.cls, self.sep = (tokenizer.token_to_id(piece) for piece in ("[CLS]", "[SEP]"))

    def options(self, path):
        """Options of `etc prepare` for this file."""
        return ["--data-set", self.data_set(self.header(path))]

    @staticmethod
    def header(path):
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            return file.readline().rstrip("\n").split("\t")

    @staticmethod
    def data_set(header):
        return next(name for name, (texts, label, _) in SETS.items() if {*texts, label} <= {*header})

    def records(self, path):
        """(texts, label as in the file) of every row"""
        header = self.header(path)
        texts, label, _ = SETS[self.data_set(header)]
        places, at = [header.index(name) for name in texts], header.index(label)
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            next(file)
            for line in file:
                row = line.rstrip("\n").split("\t")
                yield [row[place] for place in places], row[at]

    def encode(self, record):
        return encode_words(self.tokenizer, [[text] for text in record[0]])

    def examples(self, path):
        labels = SETS[self.data_set(self.header(path))][2]
        for index, record in enumerate(self.records(path)):
            a, *rest = (encoding.ids for encoding in self.encode(record))
            b = rest[0] if rest else []
            room = LENGTH - 3 if b else LENGTH - 2
            while len(a) + len(b) > room:
                (a if len(a) > len(b) else b).pop()
            second = [*b, self.sep] if b else []
            yield {
                "record_index": index,
                "token_ids": [self.cls, *a, self.sep, *second],
                "segment_ids": [0] * (len(a) + 2) + [1] * len(second),
                "label": labels.index(record[1]) if labels else -1,
                "score": 0.0 if labels else float(record[1]),
            }
