#!/usr/bin/env python3
"""Which position methods can attend to a fixed distance: the synthetic offset task, its raw numbers and its picture.

    bench/experiments/offset_task.py --output FOLDER [--methods …] [--seeds 1,2,3] [--steps 1000] [--threads 1]
                                     [--keep]

Runs build/cpu/offset_task (build it with `./run build cpu offset_task`) and writes offset_task.csv and, where bench_picture
is built, offset_task.svg into FOLDER: accuracy against training steps, one curve per seed. `bench/tables.py` makes
the table of README.md from bench/results/offset_task.csv.
"""
import argparse
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from picture import Panel, draw, seed_curves  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/cpu/offset_task"


def plot(rows, folder):
    """Plots accuracy against steps; all seeds of a method have the same colour."""
    runs = {}
    for method, seed, step, accuracy, *_ in rows:
        runs.setdefault(method, {}).setdefault(seed, []).append((step, accuracy))
    curves = seed_curves({method: list(seeds.values()) for method, seeds in runs.items()})
    draw(folder / "offset_task.svg", Panel("Offset task: which position methods point to a fixed distance", "training steps",
                                           "share of held-out sequences that are right", curves, from_zero=True))


def joined(old, new):
    """Merges both lists of lines: a new line replaces the old line of the same run. Sorted by method (old order), then
    by seed."""
    runs = {tuple(line.split(",")[:2]) for line in new}
    lines = [line for line in old if tuple(line.split(",")[:2]) not in runs] + new
    methods = list(dict.fromkeys(line.split(",")[0] for line in lines))
    return sorted(lines, key=lambda line: (methods.index(line.split(",")[0]), int(line.split(",")[1])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, type=pathlib.Path, help="folder for the results")
    parser.add_argument("--methods", help="none, absolute, or values of relative_positions, separated by commas")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the file's rows of other methods and seeds")
    options = parser.parse_args()
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM.relative_to(ROOT)} is missing: ./run build cpu offset_task")
    command = [PROGRAM, "--seeds", options.seeds, "--steps", str(options.steps), "--threads", str(options.threads)]
    command += ["--methods", options.methods] if options.methods else []
    options.output.mkdir(parents=True, exist_ok=True)
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout:
            lines.append(line)
            print(line, end="", file=sys.stderr)
    if running.returncode != 0:
        sys.exit(running.returncode)
    target, temporary = options.output / "offset_task.csv", options.output / "offset_task.csv.tmp"
    if options.keep and target.exists():
        lines = lines[:1] + joined(target.read_text().splitlines(keepends=True)[1:], lines[1:])
    temporary.write_text("".join(lines))
    os.replace(temporary, target)
    plot([line.strip().split(",") for line in lines[1:]], options.output)


if __name__ == "__main__":
    main()
