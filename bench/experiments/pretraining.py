#!/usr/bin/env python3
"""Pre-training at a size that two cores can afford: which architecture trains at which learning rate, which learns
better, and whether the model identifies hidden sentences.

    bench/experiments/pretraining.py ladder|pairs|cpc|overfit --output FOLDER [--train TEXT… --eval TEXT…]
                                     [--seeds N] [--steps N] [--threads N]

Without --train the texts are generated (`etc sample --task pretrain`). Texts are prepared once in FOLDER/data; the runs
are stored in FOLDER/<experiment>, and the same command resumes an interrupted experiment. Results:
FOLDER/pretraining_<experiment>.csv and, where bench_picture is built, a picture of the losses.

  ladder   36 layers of width 64: the largest learning rate at which the loss (mean of the last ten steps) falls below
           ln V - 1
  pairs    8 layers, the same seeds for all architectures: masked accuracy, differences with 95 % intervals
  cpc      an ETC with hidden sentences: accuracy of choosing the right one of m; also with the sentences left visible,
           and without this objective
  overfit  every architecture on a small text (64 examples or some more) until it has memorised them
"""
import argparse
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from corpus import write_corpus  # noqa: E402
from picture import Panel, save, variant_curves  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
ETC = ROOT / "build/cpu/etc"

ARCHITECTURES = {
    "post_ln": ["--norm", "post_ln"],
    "pre_ln": ["--norm", "pre_ln"],
    "realformer_sum": ["--norm", "post_ln", "--use-residual-attention", "true", "--use-running-mean", "false"],
    "realformer_mean": ["--norm", "post_ln", "--use-residual-attention", "true", "--use-running-mean", "true"],
}
RATES = ["5e-4", "1e-3", "2e-3", "4e-3"]
# Student's t for a two-sided 95 % interval, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def call(*words):
    """Runs the program with its output left visible; an error ends the experiment."""
    words = [str(word) for word in words]
    print("etc " + " ".join(words), file=sys.stderr)
    done = subprocess.run([ETC, *words], check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)


class Data:
    """Texts, vocabulary and prepared files of the experiments. A file is made when it is first requested."""

    def __init__(self, options):
        self.folder = options.output / "data"
        self.pieces = options.pieces
        self.folder.mkdir(parents=True, exist_ok=True)
        texts = {"train": options.train, "dev": options.eval}
        if not options.train:
            sample = self.folder / "sample"
            if not sample.exists():
                call("sample", "--task", "pretrain", "--output", sample)
            texts = {split: [sample / f"{split}.txt"] for split in texts}
        for split, paths in texts.items():
            target = self.folder / f"{split}.txt"
            if not target.exists():
                print(f"{split}: {write_corpus(paths, target)} documents, words", file=sys.stderr)
        self.vocabulary = self.folder / "vocab.txt"
        if not self.vocabulary.exists():
            call("prepare", "--learn-vocab", self.pieces, "--input", self.folder / "train.txt", "--output", self.vocabulary)
        self.size = sum(1 for _ in open(self.vocabulary, encoding="utf-8"))

    def file(self, split, objective, length, copies):
        target = self.folder / f"{split}_{objective}_{length}.h5"
        if not target.exists():
            call("prepare", "--task", "pretrain", "--objective", objective, "--split", split, "--input",
                 self.folder / f"{split}.txt", "--lines", "paragraphs", "--vocab", self.vocabulary, "--max-seq-length",
                 length, "--dupe-factor", copies, "--output", target)
        return target

    def few(self, objective="mlm_nsp", length=128):
        """Prepared examples of the first 34,000 characters of the text, which the models are to memorise."""
        small = self.folder / "few.txt"
        if not small.exists():
            text = (self.folder / "train.txt").read_text(encoding="utf-8").split("\n\n")
            while sum(map(len, text)) > 34000 and len(text) > 1:
                text.pop()
            small.write_text("\n\n".join(text)[:34000] + "\n\n", encoding="utf-8")
        target = self.folder / f"few_{objective}_{length}.h5"
        if not target.exists():
            call("prepare", "--task", "pretrain", "--objective", objective, "--split", "train", "--input", small, "--lines",
                 "paragraphs", "--vocab", self.vocabulary, "--max-seq-length", length, "--dupe-factor", 1, "--output", target)
        return target


def dense(data, layers, length=128):
    return ["--task", "pretrain", "--objective", "mlm_nsp", "--model-kind", "dense", "--vocab", data.vocabulary,
            "--vocab-size", data.size,
            "--num-hidden-layers", layers, "--hidden-size", 64, "--num-attention-heads", 4, "--intermediate-size", 256,
            "--max-absolute-position-embeddings", length, "--hidden-dropout-prob", 0, "--attention-probs-dropout-prob", 0]


def losses(run):
    """(step, loss) of every logged step, and the evaluations."""
    steps, evaluations = [], []
    with open(run / "metrics.jsonl", encoding="utf-8") as file:
        for line in map(json.loads, file):
            (evaluations if line["kind"] == "eval" else steps).append(line)
    return [(line["step"], line["loss"]) for line in steps if "loss" in line], evaluations


def write_table(path, header, rows):
    temporary = path.with_suffix(".csv.tmp")
    with open(temporary, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    os.replace(temporary, path)
    width = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(str(cell).ljust(width[i]) for i, cell in enumerate(row)))


def plot(folder, name, title, curves, axes=None):
    """curves: model or (model, variant) -> list of points, by default (step, loss); axes: titles of "x" and "y" """
    axes = axes or {"x": "training steps", "y": "training loss (nats)"}
    save(folder / f"{name}.svg", Panel(title, axes["x"], axes["y"], variant_curves(curves), from_zero=True))


def ladder(options, data):
    train = data.file("train", "mlm_nsp", 128, 2)
    steps = options.steps or 100
    rows, curves = [], {}
    for name, words in ARCHITECTURES.items():
        folder = options.output / "ladder" / name
        call("train", *dense(data, 36), *words, "--data", train, "--output", folder, "--batch-size", 16, "--steps", steps,
             "--warmup-proportion", 0.1, "--log-every", 1, "--threads", options.threads, "--seeds", options.seeds or 1,
             "--grid", "learning_rate=" + ",".join(RATES))
        usable = []
        for rate in RATES:
            ends = []
            for run in sorted((folder / f"learning_rate={rate}").iterdir()):
                points, _ = losses(run)
                whole = points and points[-1][0] == steps
                ends.append(statistics.mean(y for _, y in points[-10:]) if whole else math.inf)
                curves.setdefault((name, f"rate {rate}"), points)
            trains = statistics.median(ends) < math.log(data.size) - 1
            usable += [rate] if trains else []
            rows.append([name, rate, *(f"{end:.3f}" for end in ends), "yes" if trains else "no"])
        print(f"{name}: largest rate that trains: {usable[-1] if usable else 'none'}", file=sys.stderr)
    header = ["architecture", "rate", *(f"loss of the last 10 steps, seed {s + 1}" for s in range(options.seeds or 1)), "trains"]
    write_table(options.output / "pretraining_ladder.csv", header, rows)
    plot(options.output, "pretraining_ladder", "Training loss of dense encoders of 36 layers, by learning rate", curves)


def interval(differences):
    """Mean and half-width of its 95 % interval."""
    n = len(differences)
    half = STUDENT[n - 1] * statistics.stdev(differences) / math.sqrt(n) if n > 1 else math.nan
    return statistics.mean(differences), half


def pairs(options, data):
    train, dev = data.file("train", "mlm_nsp", 128, 4), data.file("dev", "mlm_nsp", 128, 1)
    seeds = options.seeds or 4
    accuracy, curves = {}, {}
    for name in ("post_ln", "pre_ln", "realformer_sum"):
        folder = options.output / "pairs" / name
        call("train", *dense(data, 8), *ARCHITECTURES[name], "--data", train, "--eval-data", dev, "--output", folder,
             "--batch-size", 32, "--steps", options.steps or 400, "--learning-rate", "1e-3", "--threads", options.threads,
             "--seeds", seeds)
        runs = json.loads((folder / "grid.json").read_text(encoding="utf-8"))["runs"]
        accuracy[name] = [100 * run["metrics"]["masked_lm_accuracy"] for run in runs]
        curves[name] = losses(folder / runs[0]["folder"])[0]
    rows = [[name, *(f"{value:.2f}" for value in values), f"{statistics.mean(values):.2f}", ""]
            for name, values in accuracy.items()]
    for name in ("post_ln", "pre_ln"):
        differences = [a - b for a, b in zip(accuracy["realformer_sum"], accuracy[name])]
        mean, half = interval(differences)
        rows.append([f"realformer_sum - {name}", *(f"{d:+.2f}" for d in differences), f"{mean:+.2f}",
                     f"{half:.2f}" if seeds > 1 else ""])
    header = ["masked accuracy, %", *(f"seed {s + 1}" for s in range(seeds)), "mean", "95 % interval, +-"]
    write_table(options.output / "pretraining_pairs.csv", header, rows)
    plot(options.output, "pretraining_pairs", "Training loss of dense encoders of 8 layers, first seed", curves)


def cpc(options, data):
    model = ["--task", "pretrain", "--vocab", data.vocabulary, "--vocab-size", data.size, "--num-hidden-layers", 4, "--hidden-size", 128,
             "--num-attention-heads", 4, "--intermediate-size", 512, "--local-radius", 16, "--use-hard-g2l-mask", "true",
             "--hidden-dropout-prob", 0, "--attention-probs-dropout-prob", 0, "--use-residual-attention", "true"]
    files = {objective: [data.file(split, objective, 256, 2) for split in ("train", "dev")] for objective in ("mlm_cpc",)}
    variants = {"hidden sentences": ["--objective", "mlm_cpc"],
                "sentences left visible": ["--objective", "mlm_cpc", "--cpc-mask-sentences", "false"],
                "masked pieces alone": ["--objective", "mlm_cpc", "--w-mlm", 1, "--w-cpc", 0]}
    rows, curves = [], {}
    for name, words in variants.items():
        run = options.output / "cpc" / name.replace(" ", "_")
        train, dev = files["mlm_cpc"]
        call("train", *model, *words, "--data", train, "--eval-data", dev, "--output", run, "--batch-size", 16, "--steps",
             options.steps or 600, "--learning-rate", "5e-4", "--eval-every", 50, "--threads", options.threads)
        points, evaluations = losses(run)
        last = evaluations[-1]
        rows.append([name, *(f"{last.get(key, math.nan):.4f}" for key in
                             ("masked_lm_accuracy", "masked_lm_loss", "cpc_accuracy", "cpc_loss", "cpc_choices"))])
        curves[name] = [(line["step"], line["cpc_loss"]) for line in evaluations if "cpc_loss" in line]
    header = ["run", "masked_lm_accuracy", "masked_lm_loss", "cpc_accuracy", "cpc_loss", "choices m (chance 1/m)"]
    write_table(options.output / "pretraining_cpc.csv", header, rows)
    plot(options.output, "pretraining_cpc", "Loss of hidden sentences on held-out texts", curves,
         {"x": "training steps", "y": "loss of hidden sentences (nats)"})


def overfit(options, data):
    few = data.few()
    rows, curves = [], {}
    for name, words in ARCHITECTURES.items():
        run = options.output / "overfit" / name
        call("train", *dense(data, 4), *words, "--data", few, "--eval-data", few, "--output", run, "--batch-size", 16,
             "--steps", options.steps or 1000, "--learning-rate", "2e-3", "--eval-every", 50, "--threads", options.threads)
        points, evaluations = losses(run)
        first = next((line["step"] for line in evaluations if line["masked_lm_accuracy"] > 0.95), "-")
        last = max(evaluations, key=lambda line: line["masked_lm_accuracy"])
        rows.append([name, f"{last['masked_lm_accuracy']:.4f}", f"{last['next_sentence_accuracy']:.4f}", first])
        curves[name] = points
    write_table(options.output / "pretraining_overfit.csv", ["architecture", "masked accuracy", "next sentence accuracy", "steps to 95 %"], rows)
    plot(options.output, "pretraining_overfit", "Training loss of dense encoders that memorise 65 pairs of segments", curves)


def parser_of(description, experiments):
    """Parser with the options that all experiments on texts have in common."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("--output", required=True, type=pathlib.Path, help="folder for data, runs and results")
    parser.add_argument("--train", nargs="*", help="text files to train on (.gz is allowed); default: generated texts")
    parser.add_argument("--eval", nargs="*", help="text files to evaluate on")
    parser.add_argument("--pieces", type=int, default=8192, help="size of the learned vocabulary")
    parser.add_argument("--steps", type=int)
    return parser


def run_experiment(parser, experiments):
    options = parser.parse_args()
    if bool(options.train) != bool(options.eval):
        parser.error("--train and --eval go together")
    if not ETC.exists():
        sys.exit(f"{ETC.relative_to(ROOT)} is missing: ./run build")
    experiments[options.experiment](options, Data(options))


def main():
    experiments = {"ladder": ladder, "pairs": pairs, "cpc": cpc, "overfit": overfit}
    parser = parser_of(__doc__, experiments)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--threads", type=int, default=2)
    run_experiment(parser, experiments)


if __name__ == "__main__":
    main()
