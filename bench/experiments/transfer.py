#!/usr/bin/env python3
"""Benefit of a short pre-training: STS-B and SQuAD from pre-trained and from random weights, with equal recipes and
seeds.

    bench/experiments/transfer.py stsb|squad --data DATA --output FOLDER [--seeds 3] [--pretrain-steps 600]
                                  [--threads 1]

DATA/mlm, DATA/glue and DATA/squad contain the original files. A vocabulary and a dense encoder (4 layers, width 128,
Pre-LN) are trained once, in FOLDER/pretrained, on the valid and test texts of WikiText-2 and on speeches. The same
command resumes an interrupted experiment. Results: FOLDER/transfer_stsb.csv, FOLDER/transfer_squad.csv; a picture where
bench_picture is built.

  stsb    --epochs passes over the 5,749 training pairs, Pearson and Spearman on the 1,500 dev pairs, for each of
          --rates
  squad   version 2.0: one pass over the questions of 12 articles, tested on 4 others, compared with two baselines: "no
          answer" to every question, and the first name in the text (a run of capitalised words) that is not in the
          question
"""
import argparse
import gzip
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from corpus import write_corpus  # noqa: E402
from picture import Panel, save, variant_curves  # noqa: E402
from program import Program, add_option, write_csv  # noqa: E402

TEXTS = ["wikitext2_valid.txt", "wikitext2_test.txt", "state_of_the_union_documents.txt.gz"]
PIECES = 8192
POSITIONS = 256
TRAINING_ARTICLES = 12


class Lab:
    """What both experiments share and is made only once: vocabulary, pre-trained weights, prepared data."""

    def __init__(self, options):
        self.etc, self.options = Program(options.program), options
        self.folder = options.output / "pretrained"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.vocabulary = self.folder / "vocab.txt"
        text = self.folder / "text.txt"
        if not text.exists():
            print(write_corpus([options.data / "mlm" / name for name in TEXTS], text), "documents, words", flush=True)
        if not self.vocabulary.exists():
            self.etc("prepare", "--learn-vocab", PIECES, "--input", text, "--output", self.vocabulary)
        with open(self.vocabulary, encoding="utf-8") as lines:
            self.sizes = ["--model-kind", "dense", "--vocab-size", sum(1 for _ in lines), "--hidden-size", 128,
                          "--num-hidden-layers", 4, "--num-attention-heads", 4, "--intermediate-size", 512,
                          "--max-absolute-position-embeddings", POSITIONS, "--norm", "pre_ln"]
        self.weights = self.pretrained(text)

    def prepared(self, name, *words):
        target = self.options.output / "data" / name
        if not target.exists():
            self.etc("prepare", "--vocab", self.vocabulary, "--output", target, *words)
        return target

    def pretrained(self, text):
        data = self.prepared("text.h5", "--task", "pretrain", "--objective", "mlm_nsp", "--split", "train", "--input", text,
                             "--lines", "paragraphs", "--max-seq-length", 128, "--dupe-factor", 4)
        run = self.folder / "run"
        self.etc("train", "--task", "pretrain", "--objective", "mlm_nsp", *self.sizes, "--vocab", self.vocabulary, "--data",
                 data, "--output", run, "--batch-size", 32, "--steps", self.options.pretrain_steps, "--learning-rate",
                 "1e-3", "--hidden-dropout-prob", 0, "--attention-probs-dropout-prob", 0, "--save-every", 200,
                 "--threads", self.options.threads)
        return run / "last"

    def trained(self, experiment, start, *words):
        """Trains from one start (pre-trained or random weights) with all seeds; returns the folder of the runs."""
        folder = self.options.output / experiment / start
        first = ["--init-from", self.weights] if start == "pre-trained" else self.sizes
        self.etc("train", *first, "--output", folder, "--seeds", self.options.seeds, "--threads", self.options.threads,
                 "--vocab", self.vocabulary, "--hidden-dropout-prob", 0.1, "--attention-probs-dropout-prob", 0.1, *words)
        return folder


def runs_of(folder):
    return json.loads((folder / "grid.json").read_text(encoding="utf-8"))["runs"]


STARTS = ["pre-trained", "random"]


def stsb(lab):
    rows, curves = [], {}
    source = lab.options.data / "glue/STS-B"
    files = {split: lab.prepared(f"stsb_{split}.h5", "--task", "glue", "--data-set", "sts-b", "--layout", "csv", "--split",
                                 split, "--input", source / f"stsb-en-{split}.csv") for split in ("train", "dev")}
    for start in STARTS:
        folder = lab.trained("stsb", start, "--task", "glue", "--data-set", "sts-b", "--data", files["train"], "--eval-data",
                             files["dev"], "--batch-size", 32, "--epochs", lab.options.epochs, "--eval-every", 60,
                             "--grid", f"learning_rate={lab.options.rates}")
        settings = {}
        for run in runs_of(folder):
            log = (folder / run["folder"] / "metrics.jsonl").read_text(encoding="utf-8")
            points = [line for line in map(json.loads, log.splitlines()) if line["kind"] == "eval"]
            rate = re.search(r"learning_rate=([^,/]+)", run["folder"])[1]
            settings.setdefault(rate, []).append(points)
        for rate, seeds in settings.items():
            last = [points[-1] for points in seeds]
            pearson = [point["pearson"] for point in last]
            rows.append([start, rate, *(f"{value:.3f}" for value in pearson), f"{statistics.mean(pearson):.3f}",
                         f"{statistics.mean(point['spearman'] for point in last):.3f}"])
            curves[f"{start} weights", f"rate {rate}"] = [(line[0]["step"], statistics.mean(point["pearson"] for point in line))
                                          for line in zip(*seeds)]
    header = ["weights at the start", "learning rate", *(f"Pearson, seed {s + 1}" for s in range(lab.options.seeds)),
              "mean Pearson", "mean Spearman"]
    write_csv(lab.options.output / "transfer_stsb.csv", header, rows)
    plot(lab.options.output, curves)


def plot(folder, curves):
    save(folder / "transfer_stsb.svg",
         Panel("STS-B: correlation on dev, mean of the seeds", "training steps", "Pearson correlation",
               variant_curves(curves), from_zero=True))


def first_name(context, question):
    """The first run of capitalised words that is not in the question; "" if the text has none."""
    for found in re.finditer(r"[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*", context):
        if found[0].lower() not in question.lower():
            return found[0]
    return ""


def split_articles(lab):
    """Writes one file with the first 12 articles and one with the others; returns both paths, and the questions of the
    latter with their texts."""
    with gzip.open(lab.options.data / "squad/squad_v2.0_dev_cs224n.json.gz", "rt", encoding="utf-8") as file:
        whole = json.load(file)
    files = {}
    for name, articles in (("train", whole["data"][:TRAINING_ARTICLES]), ("dev", whole["data"][TRAINING_ARTICLES:])):
        files[name] = lab.options.output / "data" / f"squad_{name}.json"
        files[name].write_text(json.dumps({**whole, "data": articles}), encoding="utf-8")
    questions = [(question, paragraph["context"]) for article in whole["data"][TRAINING_ARTICLES:]
                 for paragraph in article["paragraphs"] for question in paragraph["qas"]]
    return files, questions


def scores(lab, predictions, gold):
    path = lab.options.output / "data/predictions.json"
    path.write_text(json.dumps(predictions), encoding="utf-8")
    return lab.etc.metrics("eval", "--task", "squad", "--predictions", path, "--gold", gold)


def squad(lab):
    files, questions = split_articles(lab)
    windows = ["--task", "squad", "--seq-len", POSITIONS, "--stride", 128]
    train = lab.prepared("squad_train.h5", *windows, "--split", "train", "--input", files["train"], "--version-2", "true",
                         "--first-answer", "true")
    dev = lab.prepared("squad_dev.h5", *windows, "--split", "dev", "--is-training", "false", "--input", files["dev"])
    names = ["exact", "f1", "HasAns_exact", "HasAns_f1", "NoAns_exact", "best_f1"]
    rows = []

    def add(label, found):
        rows.append([label, *(f"{found[name]:.1f}" if name in found else "" for name in names)])
        write_csv(lab.options.output / "transfer_squad.csv", ["answers of", *names], rows)

    add("nobody: always no answer", scores(lab, {question["id"]: "" for question, _ in questions}, files["dev"]))
    add("the first name in the text", scores(lab, {question["id"]: first_name(context, question["question"])
                                                   for question, context in questions}, files["dev"]))
    for start in STARTS:
        folder = lab.trained("squad", start, "--task", "squad", "--version-2", "true", "--data", train, "--eval-data", dev,
                             "--batch-size", 16, "--epochs", 1, "--learning-rate", "5e-4")
        for seed, run in enumerate(runs_of(folder)):
            model = folder / run["folder"] / "last"
            add(f"the model, {start}, seed {seed + 1}", lab.etc.metrics("eval", "--model", model, "--data", dev, "--threads",
                                                                        lab.options.threads))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    experiments = {"stsb": stsb, "squad": squad}
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder with mlm/, glue/ and squad/")
    parser.add_argument("--output", required=True, type=pathlib.Path, help="folder for models and results")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pretrain-steps", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=1, help="training epochs of stsb")
    parser.add_argument("--rates", default="5e-4", help="learning rates of stsb, separated by commas")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    add_option(parser)
    options = parser.parse_args()
    (options.output / "data").mkdir(parents=True, exist_ok=True)
    experiments[options.experiment](Lab(options))


if __name__ == "__main__":
    main()
