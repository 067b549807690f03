#!/usr/bin/env python3
"""Overfitting test on GLUE and SQuAD: a small dense encoder must memorise 100 rows of each data set, and an article.

    bench/experiments/overfit_qa.py --data FOLDER --output FOLDER [--sets rte,cola,…,squad] [--threads 2]

FOLDER/glue and FOLDER/squad contain the original files, FOLDER/vocab a BERT vocabulary. Trains with build/cpu/etc on
the first rows of a training file and evaluates on the same rows; writes overfit_qa.csv into the output folder.

CoLA, MRPC, RTE and STS-B use real rows. For the other data sets only samples of a row or two are available; they are
extended to 100 rows in the same format with sentences of CoLA, MRPC, RTE and SQuAD. The labels of QNLI are true
(whether the sentence contains the answer); the others are random, because memorisation does not need meaningful labels.
"""
import argparse
import json
import pathlib
import random
import tempfile
import time

from program import Program, add_option, write_csv

ROWS = 100
SIZES = ["--model-kind", "dense", "--vocab-size", "30522", "--hidden-size", "128", "--num-hidden-layers", "4",
         "--num-attention-heads", "4", "--intermediate-size", "512", "--max-absolute-position-embeddings", "512",
         "--norm", "pre_ln", "--hidden-dropout-prob", "0", "--attention-probs-dropout-prob", "0"]

# data set: file below glue/, number of header lines, further options of `etc prepare`
REAL = {
    "cola": ("CoLA/in_domain_train.tsv", 0, []),
    "mrpc": ("MRPC/msr_paraphrase_train.txt", 1, []),
    "rte": ("RTE/train.tsv", 1, []),
    "sts-b": ("STS-B/stsb-en-train.csv", 0, ["--layout", "csv"]),
}
# data set: sample file below glue/glue_tsv_samples/, source of the sentences, labels (drawn at random)
MADE = {
    "sst-2": ("SST-2/train.tsv", "cola", ["0", "1"]),
    "qqp": ("QQP/train.tsv", "mrpc", ["0", "1"]),
    "mnli": ("MNLI/train.tsv", "rte", ["contradiction", "entailment", "neutral"]),
    "qnli": ("QNLI/train.tsv", "squad", None),
    "wnli": ("WNLI/train.tsv", "rte", ["0", "1"]),
}
TEXT_COLUMNS = {"sst-2": ["sentence"], "qqp": ["question1", "question2"], "qnli": ["question", "sentence"]}
ARTICLE = "squad_v1.1_train_notre_dame.json"


def lines_of(path):
    return path.read_text(encoding="utf-8-sig").split("\n")


def sentences_with_answers(article):
    """(question, sentence, label) of an article: alternately a sentence that contains the answer and one of the same
    paragraph that does not."""
    for paragraph in json.loads(article.read_text(encoding="utf-8"))["data"][0]["paragraphs"]:
        sentences = paragraph["context"].split(". ")
        for number, question in enumerate(paragraph["qas"]):
            answer = question["answers"][0]["text"]
            wanted = number % 2 == 0
            found = [s for s in sentences if (answer in s) == wanted]
            if found:
                yield question["question"].strip(), found[0].strip(), "entailment" if wanted else "not_entailment"


def borrowed(source, data):
    """Rows of texts, for SQuAD followed by the true label."""
    if source == "squad":
        return sentences_with_answers(data / "squad" / ARTICLE)
    file, header, _ = REAL[source]
    columns = {"cola": [3], "mrpc": [3, 4], "rte": [1, 2]}[source]
    rows = (line.split("\t") for line in lines_of(data / "glue" / file)[header:])
    return ([row[column] for column in columns] for row in rows)


def made_rows(name, data):
    """A file in the benchmark's format: the sample's header and rows, then rows with sentences of another data set."""
    file, source, labels = MADE[name]
    header, *rows = [line for line in lines_of(data / "glue/glue_tsv_samples" / file) if line]
    columns = header.split("\t")
    texts = TEXT_COLUMNS.get(name, ["sentence1", "sentence2"])
    draws = random.Random(1)
    for given in borrowed(source, data):
        if len(rows) == ROWS:
            break
        row = dict.fromkeys(columns, str(len(rows)))
        row.update(zip(texts, given))
        row[columns[-1]] = draws.choice(labels) if labels else given[-1]
        rows.append("\t".join(row[column] for column in columns))
    return "\n".join([header, *rows]) + "\n"


def real_rows(name, data):
    file, header, _ = REAL[name]
    return "\n".join(lines_of(data / "glue" / file)[:header + ROWS]) + "\n"


class Learner:
    def __init__(self, options):
        self.etc, self.data, self.threads = Program(options.program), options.data, options.threads
        self.vocab = options.data / "vocab/bert_uncased_vocab.txt"

    def learned(self, task, prepare, evaluate, training, raw, folder):
        """Trains a model; returns its metrics on the training rows and the wall seconds of training."""
        common = ["--task", task, "--vocab", self.vocab, "--input", raw]
        self.etc("prepare", *common, "--split", "train", "--output", folder / "train.h5", *prepare)
        self.etc("prepare", *common, "--split", "dev", "--output", folder / "dev.h5", *prepare, *evaluate)
        section = ["--data-set", prepare[1]] if task == "glue" else []
        begin = time.monotonic()
        self.etc("train", "--task", task, "--data", folder / "train.h5", "--vocab", self.vocab, "--output",
                 folder / "run", "--threads", self.threads, *SIZES, "--learning-rate", "0.001", *training, *section)
        seconds = time.monotonic() - begin
        metrics = self.evaluated(folder, "dev.h5")
        if "loss" not in metrics:  # evaluation data of SQuAD have no targets
            metrics["loss"] = self.evaluated(folder, "train.h5")["loss"]
        return metrics, seconds

    def evaluated(self, folder, data):
        return self.etc.metrics("eval", "--model", folder / "run/last", "--data", folder / data, "--threads", self.threads)

    def run(self, name):
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(made)
            if name == "squad":
                return self.learned("squad", ["--seq-len", "256", "--stride", "128"], ["--is-training", "false"],
                                    ["--epochs", "25", "--batch-size", "8"], self.data / "squad" / ARTICLE, folder)
            raw = folder / "rows.tsv"
            raw.write_text(real_rows(name, self.data) if name in REAL else made_rows(name, self.data), encoding="utf-8")
            more = REAL[name][2] if name in REAL else []
            return self.learned("glue", ["--data-set", name, *more], [], ["--epochs", "100", "--batch-size", "10"], raw,
                                folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder with glue/, squad/ and vocab/")
    parser.add_argument("--output", required=True, type=pathlib.Path, help="folder for the results")
    parser.add_argument("--sets", default=",".join([*REAL, *MADE, "squad"]))
    parser.add_argument("--threads", type=int, default=2)
    add_option(parser)
    options = parser.parse_args()
    learner, rows = Learner(options), []
    for name in options.sets.split(","):
        metrics, seconds = learner.run(name)
        shown = " ".join(f"{key} {value:.4g}" for key, value in metrics.items() if key != "loss")
        rows.append([name, "made" if name in MADE else "real", f"{metrics['loss']:.2g}", f"{seconds:.0f}", shown])
        print(*rows[-1], flush=True)
        write_csv(options.output / "overfit_qa.csv", ["data set", "rows", "loss", "seconds", "metrics"], rows)


if __name__ == "__main__":
    main()
