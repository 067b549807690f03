#!/usr/bin/env python3
"""Encoder-decoders at a size that two cores can afford: which architecture trains when deep, which translates better,
and the effect of beam size, length penalty and checkpoint averaging.

    bench/experiments/translation.py depth|quality|beam|average --output FOLDER [--source TEXT --target TEXT
                                     --dev-source TEXT --dev-target TEXT [--test-source TEXT --test-target TEXT]]
                                     [--merges N] [--seeds N] [--threads N]

Without --source the sentence pairs are generated (`etc sample --task translation`) and the pieces are words; with it, a
BPE vocabulary with N merges is learned on the training text. Texts may be gzip files. Runs are stored in
FOLDER/<experiment>, and the same command resumes an interrupted experiment. Results:
FOLDER/translation_<experiment>.csv, rewritten after every row, and, where bench_picture is built,
FOLDER/translation_<experiment>.svg.

  depth    18 + 18 layers of width 64, 300 updates of about 1,024 target pieces: Post-LN, Pre-LN, ADMIN, ADMIN with
           running means; bits per piece on dev, compared with a unigram model (of pieces if Python has h5py, else of
           words)
  quality  3 + 3 layers of width 128, five epochs (--epochs): Post-LN, ADMIN, ADMIN with running means; BLEU on the test
           text (on dev if none is given), each model compared with the previous one by a paired bootstrap
  beam     the ADMIN model with running means (seed 1) of `quality`: BLEU and length by beam size and length penalty
  average  the same model: the mean of the weights of its last 1, 3 and 5 epochs
"""
import argparse
import collections
import gzip
import json
import math
import os
import pathlib
import statistics

from pretraining import plot
from program import Program, add_option, write_csv

MODELS = {
    "post_ln": ["--norm", "post_ln"],
    "pre_ln": ["--norm", "pre_ln"],
    "admin": ["--norm", "admin"],
    "admin_mean": ["--norm", "admin", "--use-residual-attention", "true", "--use-running-mean", "true"],
}
RECIPE = ["--optimizer", "radam", "--adam-beta-2", 0.98, "--adam-epsilon", 1e-8, "--schedule", "inverse_sqrt",
          "--start-learning-rate", 1e-7, "--weight-decay", 0, "--clip-norm", 0]


def sizes(layers, width, inner, dropout):
    return ["--num-hidden-layers", layers, "--num-decoder-layers", layers, "--hidden-size", width, "--intermediate-size",
            inner, "--num-attention-heads", 4, "--hidden-dropout-prob", dropout, "--attention-probs-dropout-prob", 0.1,
            "--inner-dropout-prob", 0.1]


class Data:
    """Texts, vocabulary and prepared files; missing files are made."""

    def __init__(self, etc, options):
        folder = options.output / "data"
        folder.mkdir(parents=True, exist_ok=True)
        self.texts = {"train": (options.source, options.target), "dev": (options.dev_source, options.dev_target)}
        self.scored = (options.test_source, options.test_target)
        subword = ["--subword", "bpe"]
        self.vocabulary = folder / "vocab.bpe"
        if not options.source:
            sample = folder / "sample"
            if not sample.exists():
                etc("sample", "--task", "translation", "--records", options.records, "--output", sample)
            self.texts = {split: (sample / f"{split}.source", sample / f"{split}.target") for split in self.texts}
            self.scored = self.texts["dev"]
            self.vocabulary, subword = sample / "vocab.words", ["--subword", "word"]
        elif not self.vocabulary.exists():
            etc("prepare", "--task", "translation", "--learn-vocab", options.merges, "--source", options.source,
                "--target", options.target, "--output", self.vocabulary)
        if not self.scored[0]:
            self.scored = self.texts["dev"]
        self.files = {}
        for split, (source, target) in self.texts.items():
            self.files[split] = folder / f"{split}.h5"
            if not self.files[split].exists():
                etc("prepare", "--task", "translation", "--split", split, *subword, "--vocab", self.vocabulary, "--source",
                    source, "--target", target, "--output", self.files[split])

    def target_pieces(self, split):
        """Target pieces of the prepared file, including </s>; without h5py the words of the text instead."""
        try:
            import h5py
        except ImportError:
            path = self.texts[split][1]
            with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
                return [word for line in file for word in [*line.split(), "</s>"]]
        with h5py.File(self.files[split]) as file:
            return file["examples/target_ids/values"][:].tolist()

    def unigram_bits(self):
        """Cross-entropy in bits of the dev target pieces under a unigram model of the training text (add-one
        smoothing)."""
        train, dev = collections.Counter(self.target_pieces("train")), self.target_pieces("dev")
        total = sum(train.values()) + len(train) + 1
        return statistics.mean(-math.log2((train[piece] + 1) / total) for piece in dev)


class Table:
    """Result rows of an experiment; each row is printed and written to the file at once."""

    def __init__(self, options):
        self.path, self.rows = options.output / f"translation_{options.experiment}.csv", []

    def header(self, *names):
        self.names = names

    def add(self, row, note=""):
        self.rows.append(row)
        write_csv(self.path, self.names, self.rows)
        print(*row, note, flush=True)

    def picture(self, title, curves, x, y):
        plot(self.path.parent, self.path.stem, title, curves, {"x": x, "y": y})


def evaluations(run):
    with open(run / "metrics.jsonl", encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["kind"] == "eval"]


def train(etc, data, run, options, *words):
    """Trains a model unless its run has already ended; returns whether it diverged."""
    if (run / "done").exists():
        return (run / "done").read_text() == "diverged"
    done = etc.attempt("train", "--task", "translation", "--model-kind", "seq2seq", "--data", data.files["train"],
                       "--eval-data", data.files["dev"], "--vocab", data.vocabulary, "--threads", options.threads,
                       *RECIPE, *words, "--output", run)
    diverged = done.returncode != 0 and "is nan" in done.stderr + done.stdout
    if done.returncode != 0 and not diverged:
        raise SystemExit(done.stderr)
    (run / "done").write_text("diverged" if diverged else "trained")
    return diverged


def bits_by_step(run):
    return [(line["step"], -line["log2_likelihood"]) for line in evaluations(run)]


def depth(etc, data, options, table):
    unigram, curves = data.unigram_bits(), {}
    table.header("model", "seed", "bits_100", "bits_200", "bits_300", "unigram_bits", "note")
    for name, model in MODELS.items():
        for seed in range(1, options.seeds + 1):
            run = options.output / "depth" / f"{name}_{seed}"
            diverged = train(etc, data, run, options, *model, *sizes(18, 64, 256, 0.1), "--learning-rate", 1e-3,
                             "--warmup-steps", 100, "--tokens-per-batch", 2048, "--steps", 300, "--eval-every", 100,
                             "--seed", seed)
            points = bits_by_step(run)
            curves[name, f"seed {seed}"] = points
            table.add([name, seed, *(f"{bits:.3f}" for _, bits in points), *[""] * (3 - len(points)), f"{unigram:.3f}",
                       "diverged" if diverged else ""])
    curves["frequencies of the pieces"] = [(100, unigram), (300, unigram)]
    table.picture("Bits of encoder-decoders of 18 and 18 layers on dev", {name: points for name, points in curves.items() if points}, "training steps",
                  "bits per target piece of dev")


def quality_run(options, name, seed):
    return options.output / "quality" / f"{name}_{seed}"


def translated(etc, data, options, model, to, *words):
    """Translates the test text unless the file exists. Writes a temporary file first, so that an existing file is
    always complete."""
    if not to.exists():
        temporary = to.with_name(to.name + ".tmp")
        etc("translate", "--model", model, "--input", data.scored[0], "--output", temporary, "--threads",
            options.threads, *words)
        os.replace(temporary, to)
    return to


def scored(etc, data, hypotheses, *words):
    return json.loads(etc("eval", "--task", "translation", "--predictions", hypotheses, "--gold", data.scored[1],
                          "--json", *words))


def verdict(score):
    """Whether the interval of the difference excludes 0. The gains reported in the papers are smaller than the interval
    of a test set of 1,000 sentences, so models are ranked only if it does."""
    if "difference" not in score:
        return ""
    return "not distinguishable" if score["difference_low"] <= 0 <= score["difference_high"] else "distinguishable"


def quality(etc, data, options, table):
    curves = {}
    table.header("model", "seed", "bits", "bleu", "brevity_penalty", "against", "difference", "low", "high", "p_value",
                 "verdict")
    for seed in range(1, options.seeds + 1):
        before = None
        for name in ("post_ln", "admin", "admin_mean"):
            run = quality_run(options, name, seed)
            if train(etc, data, run, options, *MODELS[name], *sizes(3, 128, 512, 0.3), "--learning-rate", 2e-3,
                     "--warmup-steps", options.warmup, "--tokens-per-batch", options.tokens, "--epochs", options.epochs,
                     "--keep-last", 5, "--seed", seed):
                table.add([name, seed, *[""] * 8, "diverged"])
                continue
            hypotheses = translated(etc, data, options, run / "last", run / "translated")
            score = scored(etc, data, hypotheses, *(["--baseline", before[1]] if before else []))
            curves[name, f"seed {seed}"] = bits_by_step(run)
            table.add([name, seed, f"{curves[name, f'seed {seed}'][-1][1]:.3f}", f"{score['metrics']['bleu']:.2f}",
                       f"{score['brevity_penalty']:.3f}", before[0] if before else "",
                       *(f"{score[key]:.3f}" if key in score else ""
                         for key in ("difference", "difference_low", "difference_high", "p_value")), verdict(score)],
                      score["signature"])
            before = name, hypotheses
    table.picture("Bits of encoder-decoders of 3 and 3 layers on dev", curves, "training steps", "bits per target piece of dev")


def beam(etc, data, options, table):
    run, curves = quality_run(options, "admin_mean", 1), {}
    table.header("beam", "length_penalty", "bleu", "length_ratio", "brevity_penalty")
    for width in (1, 2, 4, 8):
        for penalty in (0, 0.6, 1, 1.4):
            hypotheses = translated(etc, data, options, run / "last", run / f"translated.{width}.{penalty}", "--beam", width,
                                    "--length-penalty", penalty)
            score = scored(etc, data, hypotheses)
            ratio = score["system_length"] / score["reference_length"]
            curves.setdefault(f"beam {width}", []).append((penalty, ratio))
            table.add([width, penalty, f"{score['metrics']['bleu']:.2f}", f"{ratio:.4f}", f"{score['brevity_penalty']:.3f}"],
                      score["signature"])
    table.picture("Length of translations by length penalty and beam", curves, "length penalty (exponent)",
                  "length / length of the references")


def average(etc, data, options, table):
    run = quality_run(options, "admin_mean", 1)
    kept = sorted((run / "kept").glob("step_*"), key=lambda folder: int(folder.name.removeprefix("step_")))
    table.header("epochs", "bits", "bleu", "brevity_penalty")
    for count in (count for count in (1, 3, 5) if count <= len(kept)):
        mean = run / f"mean_{count}"
        if not mean.exists():
            etc("convert", "--average", *kept[-count:], "--output", mean)
        score = scored(etc, data, translated(etc, data, options, mean, run / f"translated.mean_{count}"))
        bits = etc.metrics("eval", "--model", mean, "--data", data.files["dev"], "--threads",
                           options.threads)["log2_likelihood"]
        table.add([count, f"{-bits:.3f}", f"{score['metrics']['bleu']:.2f}", f"{score['brevity_penalty']:.3f}"],
                  score["signature"])


def options_of_text(parser):
    for name in ("--source", "--target", "--dev-source", "--dev-target", "--test-source", "--test-target"):
        parser.add_argument(name, type=pathlib.Path)


def check_texts(parser, options):
    given = [bool(text) for text in (options.source, options.target, options.dev_source, options.dev_target)]
    if any(given) != all(given) or (options.test_source and not options.source):
        parser.error("--source, --target, --dev-source and --dev-target belong together")
    if bool(options.test_source) != bool(options.test_target):
        parser.error("--test-source and --test-target belong together")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=["depth", "quality", "beam", "average"])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options_of_text(parser)
    parser.add_argument("--records", type=int, default=8000, help="number of generated sentence pairs")
    parser.add_argument("--merges", type=int, default=8000)
    parser.add_argument("--epochs", type=int, default=5, help="training epochs of quality")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens per batch of quality, source and target")
    parser.add_argument("--warmup", type=int, default=400, help="warm-up steps of quality")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    add_option(parser)
    options = parser.parse_args()
    check_texts(parser, options)
    etc = Program(options.program)
    run = {"depth": depth, "quality": quality, "beam": beam, "average": average}[options.experiment]
    run(etc, Data(etc, options), options, Table(options))


if __name__ == "__main__":
    main()
