#!/usr/bin/env python3
"""Long-range copying: a language model with memory against one without; raw numbers and picture.

    bench/experiments/memory_task.py --output FOLDER [--memory 0,16,64] [--seeds 1,2,3] [--steps 2000]
                                     [--program build/cpu/etc]

Generates texts whose last letter repeats their first letter, more than 40 characters earlier (`etc sample --task lm`),
prepares them in segments of 16, and trains tasks/configs/lm_tiny.json with each memory length and seed on one thread.
Writes memory_task.csv and, where bench_picture is built, memory_task.svg into FOLDER: accuracy on the answers and bits
per character of held-out texts. `bench/tables.py` makes the table of LANGUAGE_MODEL.md from
bench/results/memory_task.csv.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import program  # noqa: E402
from picture import Panel, draw, seed_curves  # noqa: E402

CONFIG = program.ROOT / "tasks/configs/lm_tiny.json"
HEADER = ["memory_length", "seed", "step", "bits_per_character", "answer_accuracy", "seconds"]


def prepare(etc, folder, records):
    sample = folder / "sample"
    etc("sample", "--task", "lm", "--records", records, "--distance", 40, "--output", sample)
    for split in ("train", "dev"):
        etc("prepare", "--task", "lm", "--split", split, "--input", sample / f"{split}.txt", "--vocab",
            sample / "vocab.chars", "--text-ends", "lines", "--segment-length", 16, "--output", folder / f"{split}.h5")
    return sample / "vocab.chars"


def answer_accuracy(predictions):
    """Share of the letters after a question mark that the model predicts as the most probable piece."""
    right = answers = 0
    asked = False
    with open(predictions, encoding="utf-8") as file:
        for line in file:
            segment = json.loads(line)
            for piece, best in zip(segment["pieces"], segment["best"]):
                if asked:
                    answers += 1
                    right += piece == best
                asked = piece == "?"
    return right / answers


def train(etc, folder, vocabulary, memory, seed, steps):
    """Trains one model; returns one row per evaluation, the last one with the accuracy on the answers."""
    run = folder / f"run_{memory}_{seed}"
    begin = time.monotonic()
    etc("train", "--config", CONFIG, "--data", folder / "train.h5", "--eval-data", folder / "dev.h5", "--vocab",
        vocabulary, "--memory-length", memory, "--seed", seed, "--steps", steps, "--eval-every", max(1, steps // 6),
        "--threads", 1, "--output", run)
    seconds = time.monotonic() - begin
    etc("predict", "--model", run / "last", "--data", folder / "dev.h5", "--threads", 1, "--output", run / "p.jsonl")
    rows = []
    for line in (run / "metrics.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if "bits_per_character" in entry:
            rows.append([memory, seed, entry["step"], f"{entry['bits_per_character']:.4f}", "", ""])
    rows[-1][4:] = [f"{answer_accuracy(run / 'p.jsonl'):.4f}", f"{seconds:.0f}"]
    print(f"memory {memory}, seed {seed}: {rows[-1][3]} bits per character, answers {rows[-1][4]}, {rows[-1][5]} s",
          file=sys.stderr)
    return rows


def plot(rows, folder):
    """Plots bits per character against steps; all seeds of a memory length have the same colour."""
    runs = {}
    for memory, seed, step, bits, *_ in rows:
        runs.setdefault(f"memory of {memory} tokens", {}).setdefault(seed, []).append((step, bits))
    curves = seed_curves({memory: list(seeds.values()) for memory, seeds in runs.items()})
    draw(folder / "memory_task.svg", Panel("Copying over a long distance, by memory length", "training steps",
                                           "bits per character of held-out texts", curves))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, type=pathlib.Path, help="folder for the results")
    parser.add_argument("--memory", default="0,16,64", help="memory lengths in tokens, separated by commas")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--records", type=int, default=2000, help="number of training texts")
    program.add_option(parser)
    options = parser.parse_args()
    etc = program.Program(options.program)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        vocabulary = prepare(etc, folder, options.records)
        for seed in options.seeds.split(","):
            for memory in options.memory.split(","):
                rows += train(etc, folder, vocabulary, memory, seed, options.steps)
            program.write_csv(options.output / "memory_task.csv", HEADER, rows)  # partial results, in case the run is stopped
    plot(rows, options.output)


if __name__ == "__main__":
    main()
