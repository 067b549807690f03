"""MLM + NSP instances of plain text, as BERT's published code makes them (create_pretraining_data). The input has one
sentence per line and empty lines between documents. Each document is used ten times with different splits, next
sentences and masks; the instances are shuffled and stored in padded arrays.

Python's random numbers differ from those of `etc prepare`, so the instances differ too; only statistics of the two
files must agree. Instances that need no random numbers (one segment without masks) must be equal."""
import os
import random
import subprocess
import tempfile

import h5py
import numpy

from store import Feature

LENGTH, PREDICTIONS, COPIES = 128, 20, 10
MASKED_SHARE, SHORT_SHARE = 0.15, 0.1
LINES = 1000  # lines per tokenizer call


class Preparation:
    OPTIONS = ["--objective", "mlm_nsp"]
    FEATURES = {
        "input_ids": Feature(LENGTH),
        "input_mask": Feature(LENGTH),
        "segment_ids": Feature(LENGTH),
        "masked_lm_positions": Feature(PREDICTIONS),
        "masked_lm_ids": Feature(PREDICTIONS),
        "masked_lm_weights": Feature(PREDICTIONS, type=numpy.float32),
        "next_sentence_label": Feature(),
    }

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.vocabulary = tokenizer.get_vocab_size()
        self.cls, self.sep, self.mask = (tokenizer.token_to_id(piece) for piece in ("[CLS]", "[SEP]", "[MASK]"))

    def records(self, path):
        """The lines of the file in lists of LINES."""
        lines = []
        with open(path, encoding="utf-8", errors="ignore") as file:
            for line in file:
                lines.append(line.strip())
                if len(lines) == LINES:
                    yield lines
                    lines = []
        yield lines

    def encode(self, lines):
        return self.tokenizer.encode_batch(lines, add_special_tokens=False)

    def documents(self, path):
        documents = [[]]
        for lines in self.records(path):
            for line, encoding in zip(lines, self.encode(lines)):
                if not line:
                    documents.append([])
                elif encoding.ids:
                    documents[-1].append(encoding.ids)
        return [document for document in documents if document]

    def examples(self, path):
        draws = random.Random(12345)
        documents = self.documents(path)
        draws.shuffle(documents)
        examples = []
        for _ in range(COPIES):
            for number in range(len(documents)):
                examples.extend(self.pairs(documents, number, draws))
        draws.shuffle(examples)
        return examples

    def pairs(self, documents, number, draws):
        document, budget = documents[number], LENGTH - 3
        target = draws.randint(2, budget) if draws.random() < SHORT_SHARE else budget
        chunk, length, i = [], 0, 0
        while i < len(document):
            chunk.append(document[i])
            length += len(document[i])
            if i == len(document) - 1 or length >= target:
                middle = draws.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
                a = [piece for sentence in chunk[:middle] for piece in sentence]
                is_random = len(chunk) == 1 or draws.random() < 0.5
                if is_random:
                    b = self.random_segment(documents, number, target - len(a), draws)
                    i -= len(chunk) - middle
                else:
                    b = [piece for sentence in chunk[middle:] for piece in sentence]
                while len(a) + len(b) > budget:
                    longer = a if len(a) > len(b) else b
                    if draws.random() < 0.5:
                        del longer[0]
                    else:
                        longer.pop()
                yield self.example(a, b, is_random, draws)
                chunk, length = [], 0
            i += 1

    @staticmethod
    def random_segment(documents, number, wanted, draws):
        for _ in range(10):
            other = draws.randint(0, len(documents) - 1)
            if other != number:
                break
        document, segment = documents[other], []
        for sentence in document[draws.randint(0, len(document) - 1):]:
            segment.extend(sentence)
            if len(segment) >= wanted:
                break
        return segment

    def example(self, a, b, is_random, draws):
        ids = [self.cls, *a, self.sep, *b, self.sep]
        places = [place for place, piece in enumerate(ids) if piece not in (self.cls, self.sep)]
        draws.shuffle(places)
        chosen = sorted(places[:min(PREDICTIONS, max(1, round(len(ids) * MASKED_SHARE)))])
        labels = [ids[place] for place in chosen]
        for place in chosen:
            if draws.random() < 0.8:
                ids[place] = self.mask
            elif draws.random() >= 0.5:
                ids[place] = draws.randint(0, self.vocabulary - 1)
        return {
            "input_ids": ids,
            "input_mask": [1] * len(ids),
            "segment_ids": [0] * (len(a) + 2) + [1] * (len(b) + 1),
            "masked_lm_positions": chosen,
            "masked_lm_ids": labels,
            "masked_lm_weights": [1.0] * len(chosen),
            "next_sentence_label": int(is_random),
        }

    def runs(self, path):
        """Instances without random numbers: segments of consecutive sentences of one document; sentences that are too
        long are cut."""
        most = LENGTH - 2
        for document in self.documents(path):
            run = []
            for sentence in (long[at:at + most] for long in document for at in range(0, len(long), most)):
                if len(run) + len(sentence) > most:
                    yield (self.cls, *run, self.sep)
                    run = []
                run.extend(sentence)
            yield (self.cls, *run, self.sep)

    def compare(self, theirs, ours, given):
        """Returns the number of examples and a list of differences."""
        differences = []
        with h5py.File(theirs) as file:
            labels, mask = file["next_sentence_label"][:], file["input_mask"][:]
            ids, places = file["input_ids"][:], file["masked_lm_positions"][:]
            weights = file["masked_lm_weights"][:] > 0
            shown = numpy.take_along_axis(ids, places, axis=1)[weights]
            python = [len(labels), mask.sum(), labels.mean(), weights.sum(), (shown == self.mask).mean()]
        with h5py.File(ours) as file:
            group = file["examples"]
            shown = group["masked_input_ids/values"][:]
            etc = [len(group["next_sentence_label/values"]), len(group["long_token_ids/values"]),
                   group["next_sentence_label/values"][:].mean(), len(shown), (shown == self.mask).mean()]
        names = ["instances", "pieces", "share of random next", "masked pieces", "share of [MASK]"]
        for name, expected, found in zip(names, python, etc):
            if abs(found - expected) > 0.02 * expected:
                differences.append(f"{name}: {expected}, of etc prepare {found}")
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "runs.h5")
            subprocess.run([given.program, "prepare", "--task", "pretrain", "--split", "train", "--input", given.input,
                            "--vocab", given.vocab, "--objective", "mlm", "--max-seq-length", str(LENGTH),
                            "--max-sentence-tokens", str(LENGTH), "--dynamic-masking", "true", "--output", output],
                           check=True, capture_output=True)
            with h5py.File(output) as file:
                group = file["examples/long_token_ids"]
                runs = numpy.split(group["values"][:], group["offsets"][1:-1])
        if sorted(tuple(run.tolist()) for run in runs) != sorted(self.runs(given.input)):
            differences.append("runs of sentences without masks: not the same ones")
        return python[0], differences
