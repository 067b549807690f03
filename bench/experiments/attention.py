#!/usr/bin/env python3
"""Attention statistics after pre-training: entropy and divergence of four architectures, and the attention mass by type
of an ETC with and without hidden sentences (analysis 13).

    bench/experiments/attention.py layers|masses --output FOLDER [--train TEXT… --eval TEXT…]
                                   [--seeds N] [--steps N] [--examples N] [--threads N]

Texts, data and run folders are as in pretraining.py; the same command resumes an interrupted experiment. Both
experiments train on a small part of the text until the model has memorised it, because on a large text the attention
learns nothing within the number of steps that two cores can afford. The analysis uses held-out texts (--eval).

  layers  8 layers of width 64, the same seeds for Post-LN, Pre-LN, RealFormer sum and mean: per layer the median
          entropy, its variance over tokens, and the median divergence from the previous layer (same head, most similar
          head, own scores); whether entropy falls with depth; sign tests of RealFormer sum against the others
  masses  ETCs of 4 layers with and without hidden sentences, and with soft g2l: attention mass by type, and the first
          layer's attention by distance

Results: FOLDER/attention_<experiment>.csv, FOLDER/attention_means.csv, FOLDER/attention_signs.csv and, where bench_picture is
built, pictures. The output of `etc analyze` for each run is stored in the folder of that run.
"""
import collections
import csv
import json
import math
import statistics

from pretraining import ARCHITECTURES, call, dense, parser_of, plot, run_experiment, write_table

RATE = "2e-3"
BATCH = 16
LENGTH = 128
LAYERS, ETC_LAYERS = 8, 4
BEST, OWN = "jsd, most similar head", "median jsd, own scores"
# Column: (quantity of summary.json, index of its number).
BY_LAYER = {
    "median entropy (nats)": ("entropy", "median"),
    "variance of entropy": ("entropy", "variance"),
    "median jsd (bits)": ("jsd", "median"),
    OWN: ("own_jsd", "median"),
    "one-hot rows": ("one_hot", "mean"),
    "mean |carry|": ("carry_mean", "mean"),
}
# (architecture, column, expected sign of RealFormer sum minus architecture)
TESTS = [(other, column, -1) for other in ("post_ln", "pre_ln", "realformer_mean")
         for column in ("median entropy (nats)", "variance of entropy", "median jsd (bits)", BEST, OWN)]


def analysis_of(model, data, options, folder, words=()):
    """Summary of the first model by `etc analyze`; an existing summary in the folder is reused."""
    if not (folder / "summary.json").exists():
        call("analyze", "--model", model, "--data", data, "--examples", options.examples, "--output", folder, "--threads",
             options.threads, *words)
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))["models"][0]


def best_matches(folder):
    """Layer -> mean over heads of the divergence from the most similar head of the previous layer."""
    values = collections.defaultdict(list)
    with open(folder / "best_match.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            values[int(row["layer"])].append(float(row["median_jsd"]))
    return {layer: statistics.mean(heads) for layer, heads in values.items()}


def numbers_by_layer(summary, folder):
    """Column -> one value per layer; nan where the layer has no value."""
    quantities = summary["operators"][0]["mean_over_heads_by_layer"]
    columns = {}
    for column, (quantity, which) in BY_LAYER.items():
        values = quantities.get(quantity, {}).get(which, [None] * LAYERS)
        columns[column] = [math.nan if value is None else value for value in values]
    if "own_jsd" not in quantities:  # no residual scores: all scores are the layer's own
        columns[OWN] = columns["median jsd (bits)"]
    best = best_matches(folder)
    columns[BEST] = [best.get(layer, math.nan) for layer in range(LAYERS)]
    return columns


def sign_test(differences):
    """Counts below and above zero, and the p-value of the two-sided sign test."""
    below, above = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
    n, most = below + above, max(below, above)
    tail = sum(math.comb(n, k) for k in range(most, n + 1)) / 2 ** n if n else 1.0
    return below, above, min(1.0, 2 * tail)


def write_signs(options, found, seeds):
    """Sign tests over (seed, layer) pairs and over seeds alone, because the layers of one run are not independent."""
    rows = []
    for other, column, expected in TESTS:
        differences = [[found["realformer_sum", seed][column][layer] - found[other, seed][column][layer]
                        for layer in range(LAYERS)] for seed in range(seeds)]
        usable = [[d for d in of_seed if not math.isnan(d)] for of_seed in differences]
        below, above, p = sign_test([d for of_seed in usable for d in of_seed])
        by_seed = sign_test([statistics.mean(of_seed) for of_seed in usable])
        rows.append([f"{column}: realformer_sum - {other}", f"{statistics.mean(d for s in usable for d in s):+.4f}", below,
                     above, f"{p:.2g}", f"{by_seed[0]} of {seeds}", f"{by_seed[2]:.2g}",
                     "lower" if expected < 0 else "higher"])
    write_table(options.output / "attention_signs.csv",
                ["difference", "mean", "layers below 0", "above 0", "p", "seeds below 0", "p of seeds", "expected"], rows)


def layers(options, data):
    few, dev = data.few(), data.file("dev", "mlm_nsp", LENGTH, 1)
    seeds, steps = options.seeds or 4, options.steps or 300
    found, accuracy, falls = {}, {}, {}
    for name, words in ARCHITECTURES.items():
        folder = options.output / "layers" / name
        call("train", *dense(data, LAYERS, LENGTH), *words, "--data", few, "--eval-data", few, "--output", folder,
             "--batch-size", BATCH, "--steps", steps, "--eval-every", steps, "--learning-rate", RATE, "--threads",
             options.threads, "--seeds", seeds)
        runs = json.loads((folder / "grid.json").read_text(encoding="utf-8"))["runs"]
        for seed, run in enumerate(runs):
            place = folder / run["folder"]
            summary = analysis_of(place / "best", dev, options, place / "analysis", ["--all-heads", "--groups", "all"])
            found[name, seed] = numbers_by_layer(summary, place / "analysis")
            accuracy[name, seed] = 100 * run["metrics"]["masked_lm_accuracy"]
            falls[name, seed] = summary["operators"][0]["rank_correlation_of_layer_and_median_entropy"] or 0
    columns = [*BY_LAYER, BEST]
    rows = [[name, seed + 1, layer, *(f"{numbers[column][layer]:.4f}" for column in columns)]
            for (name, seed), numbers in found.items() for layer in range(LAYERS)]
    write_table(options.output / "attention_layers.csv", ["architecture", "seed", "layer", *columns], rows)
    middle = []
    for name in ARCHITECTURES:
        for column in columns:
            values = [statistics.mean(found[name, seed][column][layer] for seed in range(seeds)) for layer in range(LAYERS)]
            middle.append([name, column, *("–" if math.isnan(value) else f"{value:.3f}" for value in values)])
        for title, form, of_seed in (("masked accuracy of the small text, % (each seed)", "{:.1f}", accuracy),
                                     ("rank correlation of layer and entropy (each seed)", "{:+.2f}", falls)):
            middle.append([name, title, *(form.format(of_seed[name, seed]) for seed in range(seeds)),
                           *[""] * (LAYERS - seeds)])
    write_table(options.output / "attention_means.csv",
                ["architecture", "mean over seeds", *(f"layer {layer}" for layer in range(LAYERS))], middle)
    write_signs(options, found, seeds)
    pictures = {"entropy": ("median entropy (nats)", "Median entropy of attention by layer, mean over heads and seeds"),
                "jsd": ("median jsd (bits)", "Median divergence of attention from the layer before, mean over heads and seeds")}
    for picture, (column, title) in pictures.items():
        curves = {name: [(layer, value) for layer in range(LAYERS)
                         if not math.isnan(value := statistics.mean(found[name, s][column][layer] for s in range(seeds)))]
                  for name in ARCHITECTURES}
        plot(options.output, f"attention_{picture}", title, curves, {"x": "layer", "y": column})


def near_mass(folder):
    """Distance -> mean l2l probability of the first layer, over heads and all queries."""
    values = collections.defaultdict(list)
    with open(folder / "distance_mass.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["layer"] == "0" and row["group"] == "all" and row["type"] == "l2l" and row["mean_mass"]:
                values[int(row["distance"])].append(float(row["mean_mass"]))
    return {distance: statistics.mean(heads) for distance, heads in values.items()}


def masses(options, data):
    model = ["--task", "pretrain", "--objective", "mlm_cpc", "--vocab", data.vocabulary, "--vocab-size", data.size,
             "--num-hidden-layers", ETC_LAYERS, "--hidden-size", 128, "--num-attention-heads", 4, "--intermediate-size", 512,
             "--local-radius", 16, "--hidden-dropout-prob", 0, "--attention-probs-dropout-prob", 0,
             "--use-residual-attention", "true"]
    alone = ["--w-mlm", 1, "--w-cpc", 0]
    variants = {"hidden sentences": ["--use-hard-g2l-mask", "true"],
                "masked pieces alone": [*alone, "--use-hard-g2l-mask", "true"],
                "hidden sentences, soft g2l": ["--use-hard-g2l-mask", "false"]}
    few, dev = data.few("mlm_cpc", 256), data.file("dev", "mlm_cpc", 256, 2)
    seeds, steps = options.seeds or 2, options.steps or 300
    rows, curves = [], {}
    for name, words in variants.items():
        folder = options.output / "masses" / name.replace(",", "").replace(" ", "_")
        call("train", *model, *words, "--data", few, "--eval-data", few, "--output", folder, "--batch-size", BATCH // 2,
             "--steps", steps, "--eval-every", steps, "--learning-rate", "1e-3", "--threads", options.threads, "--seeds", seeds)
        runs = json.loads((folder / "grid.json").read_text(encoding="utf-8"))["runs"]
        for seed, run in enumerate(runs):
            place = folder / run["folder"] / "analysis"
            summary = analysis_of(folder / run["folder"] / "best", dev, options, place, ["--groups", "all"])
            for operator in summary["operators"]:
                quantities = operator["mean_over_heads_by_layer"]
                for quantity in [q for q in quantities if q.startswith(("mass_", "member_"))]:
                    rows.append([name, seed + 1, quantity, *(f"{value:.4f}" for value in quantities[quantity]["mean"])])
            near = near_mass(place)
            curves[name, f"seed {seed + 1}"] = sorted(near.items())
            for distance in (-2, -1, 0, 1, 2):
                rows.append([name, seed + 1, f"first layer, distance {distance:+d}", f"{near[distance]:.4f}",
                             *[""] * (ETC_LAYERS - 1)])
            rows.append([name, seed + 1, "first layer, |distance| <= 10",
                         f"{sum(p for distance, p in near.items() if abs(distance) <= 10):.4f}", *[""] * (ETC_LAYERS - 1)])
    write_table(options.output / "attention_masses.csv",
                ["run", "seed", "mean probability", *(f"layer {layer}" for layer in range(ETC_LAYERS))], rows)
    plot(options.output, "attention_distance", "Attention of long to long tokens by distance, first layer, mean over heads",
         curves, {"x": "distance, key - query (tokens)", "y": "mean probability"})


def main():
    experiments = {"layers": layers, "masses": masses}
    parser = parser_of(__doc__, experiments)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--examples", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    run_experiment(parser, experiments)


if __name__ == "__main__":
    main()
