#!/usr/bin/env python3
"""Position methods in masked-language modelling, at a size that one core can afford (relative-positions 17, R1 to R4).

    bench/experiments/positions.py methods|clip|longer|layer --output FOLDER --train TEXT… --eval TEXT…
                                   [--methods …] [--clips …] [--seeds 1,2] [--steps N] [--norm pre_ln|post_ln]
                                   [--threads N]

A dense encoder (4 layers, width 128, 4 heads) learns to predict masked whole words in texts of 128 pieces, 32 texts per
step: 244 steps are a million tokens. The default is Pre-LN: after this number of tokens, Post-LN with 8,192 pieces
still predicts only the most frequent piece. Data and runs are stored in FOLDER; the same command resumes an interrupted
experiment, and a table contains all runs found there. Results: FOLDER/positions_<experiment>.csv and, where bench_picture is
built, a picture.

  methods  R1: masked accuracy of every method; with more than one seed, the methods are ranked by accuracy and each is
           compared with the next one
  clip     R2: Huang's method 4 with distances clipped at 1 to 64 in either direction
  longer   R3: the models of `methods`, unchanged, on texts of 256
  layer    R4: the first layer of the huang4 model of `methods` (needs numpy, h5py): norms of the rows of its relative
           table, attention by distance
"""
import argparse
import statistics
import subprocess
import sys

from pretraining import ETC, Data, call, interval, losses, parser_of, plot, run_experiment, write_table
from picture import Panel, save, variant_curves  # found by the path that pretraining has set

LENGTH = 128
WIDTH, HEADS, LAYERS = 128, 4, 4
# none and absolute are not values of relative_positions. Huang's clip of n-1 covers all distances of a text.
METHODS = {
    "none": ["--max-absolute-position-embeddings", 0],
    "absolute": ["--max-absolute-position-embeddings", LENGTH],
    "shaw": ["--relative-clip", 32],
    "t5": [],
    "huang2": ["--relative-clip", LENGTH - 1],
    "huang3": ["--relative-clip", LENGTH - 1],
    "huang4": ["--relative-clip", LENGTH - 1],
}


def arguments(method, clip=None):
    words = METHODS[method]
    if method in ("none", "absolute"):
        return words
    words = ["--max-absolute-position-embeddings", 0, "--relative-positions", method, *words]
    return words if clip is None else [*words[:-1], clip]


class Runs:
    """Training runs of one experiment, one folder per run."""

    def __init__(self, options, data, steps):
        self.options, self.data = options, data
        self.steps = options.steps or steps
        self.folder = options.output / options.experiment

    def train(self, name, words):
        train, dev = (self.data.file(split, "mlm", LENGTH, copies) for split, copies in (("train", 2), ("dev", 1)))
        for seed in self.options.seeds.split(","):
            call("train", "--task", "pretrain", "--objective", "mlm", "--model-kind", "dense", "--vocab", self.data.vocabulary,
                 "--vocab-size", self.data.size, "--num-hidden-layers", LAYERS, "--hidden-size", WIDTH,
                 "--num-attention-heads", HEADS, "--intermediate-size", 4 * WIDTH, "--hidden-dropout-prob", 0,
                 "--attention-probs-dropout-prob", 0, "--norm", self.options.norm, *words, "--data", train,
                 "--eval-data", dev, "--output", self.folder / name / f"seed_{seed}", "--batch-size", 32, "--steps", self.steps, "--learning-rate", "1e-3",
                 "--warmup-proportion", 0.1, "--log-every", 10, "--seed", seed, "--threads", self.options.threads)

    def finished(self):
        """{name: {seed: run}} of all runs that have an evaluation."""
        found = {}
        for metrics in sorted(self.folder.glob("*/seed_*/metrics.jsonl")):
            if losses(metrics.parent)[1]:
                seed = int(metrics.parent.name.removeprefix("seed_"))
                found.setdefault(metrics.parents[1].name, {})[seed] = metrics.parent
        return found


def accuracy(run):
    """Masked accuracy in percent and masked loss of the last evaluation."""
    last = losses(run)[1][-1]
    return 100 * last["masked_lm_accuracy"], last["masked_lm_loss"]


def in_order(found, names):
    return [(str(name), found[str(name)]) for name in names if str(name) in found]


def result_rows(found, names):
    """One row per name: the accuracy of each seed, the mean accuracy, the mean loss."""
    rows = []
    for name, seeds in in_order(found, names):
        values = [accuracy(seeds[seed]) for seed in sorted(seeds)]
        rows.append([name, ", ".join(f"{value[0]:.2f}" for value in values), f"{statistics.mean(v[0] for v in values):.2f}",
                     f"{statistics.mean(v[1] for v in values):.4f}"])
    return rows


def methods(options, data):
    runs = Runs(options, data, 244)
    for name in options.methods.split(","):
        runs.train(name, arguments(name))
    found = runs.finished()
    rows = result_rows(found, METHODS)
    several = [name for name in found if len(found[name]) > 1]
    several.sort(key=lambda name: -statistics.mean(accuracy(run)[0] for run in found[name].values()))
    for a, b in zip(several, several[1:]):
        pairs = [accuracy(found[a][seed])[0] - accuracy(found[b][seed])[0] for seed in sorted(found[a]) if seed in found[b]]
        mean, half = interval(pairs)
        rows.append([f"{a} - {b}", ", ".join(f"{each:+.2f}" for each in pairs), f"{mean:+.2f} +- {half:.2f} (95 %)", ""])
    write_table(options.output / "positions_methods.csv",
                ["positions", "masked accuracy by seed, %", "mean, %", "masked loss"], rows)
    plot(options.output, "positions_methods", "Training loss of dense encoders by position method, first seed",
         {name: losses(seeds[min(seeds)])[0] for name, seeds in in_order(found, METHODS)})


def clip(options, data):
    runs, clips = Runs(options, data, 171), options.clips.split(",")
    for k in clips:
        runs.train(k, arguments("huang4", k))
    found = runs.finished()
    names = sorted(found, key=int)
    rows = result_rows(found, names)
    write_table(options.output / "positions_clip.csv",
                ["huang4, clipped at", "masked accuracy by seed, %", "mean, %", "masked loss"], rows)
    plot(options.output, "positions_clip", "Masked accuracy of Huang's method 4 by the distance at which it is clipped",
         {"mean of the seeds": [(int(name), float(row[2])) for name, row in zip(names, rows)]},
         {"x": "distances on either side with a row of their own", "y": "masked accuracy, %"})


def longer(options, data):
    found = Runs(argparse.Namespace(**{**vars(options), "experiment": "methods"}), data, 1).finished()
    texts, rows = data.file("dev", "mlm", 2 * LENGTH, 1), []
    for name, seeds in in_order(found, METHODS):
        run = seeds[min(seeds)]
        done = subprocess.run([ETC, "eval", "--model", run / "best", "--data", texts, "--threads", str(options.threads)],
                              capture_output=True, text=True, check=False)
        short = accuracy(run)[0]
        if done.returncode != 0:
            rows.append([name, f"{short:.2f}", "-", (done.stderr.strip().splitlines() or ["failed"])[-1]])
            continue
        said = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        long = 100 * float(said["masked_lm_accuracy"])
        rows.append([name, f"{short:.2f}", f"{long:.2f}", f"{long - short:+.2f}"])
    write_table(options.output / "positions_longer.csv",
                ["positions", f"{LENGTH} pieces, %", f"{2 * LENGTH} pieces, %", "difference, or what etc says"], rows)


def layer(options, data):
    try:
        from first_layer import FirstLayer
    except ModuleNotFoundError as error:
        sys.exit(f"{error}: this part needs numpy and h5py")
    found = Runs(argparse.Namespace(**{**vars(options), "experiment": "methods"}), data, 1).finished()
    seeds = found.get("huang4")
    if not seeds:
        sys.exit("run `methods --methods huang4` first")
    first = FirstLayer(seeds[min(seeds)] / "best", HEADS)
    norms = first.row_norms()                                         # {distance: mean over heads}
    attention = first.attention(data.file("dev", "mlm", LENGTH, 1))  # {distance: mean probability}
    far = statistics.median(value for distance, value in norms.items() if abs(distance) > 10)
    near = sum(value for distance, value in attention.items() if abs(distance) <= 10)
    rows = [[distance, f"{norms[distance]:.4f}", f"{attention[distance]:.4f}"] for distance in range(-10, 11)]
    rows.append(["norm(0) / median norm beyond 10", f"{norms[0] / far:.2f}", ""])
    rows.append(["attention within 10", "", f"{near:.4f}"])
    write_table(options.output / "positions_layer.csv", ["distance", "norm of the table's row", "mean attention"], rows)
    near_by = range(-50, 51)
    distance = "distance, key - query (pieces)"
    save(options.output / "positions_layer.svg",
         Panel("Norm of the table's row, Huang's method 4, first layer", distance, "norm, mean over heads",
               variant_curves({"norm": [(d, norms[d]) for d in near_by]}), from_zero=True),
         Panel("Attention by distance, Huang's method 4, first layer", distance, "mean probability, mean over heads",
               variant_curves({"attention": [(d, attention[d]) for d in near_by if d in attention]}), from_zero=True))


def main():
    experiments = {"methods": methods, "clip": clip, "longer": longer, "layer": layer}
    parser = parser_of(__doc__, experiments)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--clips", default="1,2,4,8,16,64")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--norm", default="pre_ln")
    parser.add_argument("--threads", type=int, default=1)
    run_experiment(parser, experiments)


if __name__ == "__main__":
    main()
