#!/usr/bin/env python3
"""Time and memory of one attention layer against the length, for every sparsity pattern and for linear attention.

    bench/patterns.py [--lengths 512,…,32768] [--patterns full,window,bigbird,performer] [--heads 12] [--repeats 3]
                      [--threads 1] [--output FOLDER]

Runs build/cpu/bench_patterns once per length and writes all results after each run: patterns.csv, patterns.json and,
where bench_picture is built, patterns.svg, with CPU time of forward and backward on the left, and the memory for scratch
and for what forward stores on the right. `bench/tables.py` makes the table of RESULTS.md from
bench/results/patterns.json.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys

from machine import machine
from picture import Curve, Panel, draw

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/cpu/bench_patterns"


def plot(rows, folder):
    def curves(value):
        patterns = dict.fromkeys(row["pattern"] for row in rows)
        return [Curve([(row["tokens"], value(row)) for row in rows if row["pattern"] == pattern], pattern, colour)
                for colour, pattern in enumerate(patterns)]

    ticks = tuple(sorted({int(row["tokens"]) for row in rows}))
    draw(folder / "patterns.svg",
         Panel("CPU time of one attention layer, forward and backward", "tokens", "CPU seconds",
               curves(lambda row: float(row["forward_s"]) + float(row["backward_s"])), "xy", ticks),
         Panel("Memory of one attention layer beside inputs and results", "tokens", "MB",
               curves(lambda row: max(int(row["forward_bytes"]), int(row["backward_bytes"])) / 1e6), "xy", ticks))


def write(rows, folder):
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "patterns.csv.tmp"
    with open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, folder / "patterns.csv")
    with open(folder / "patterns.json", "w") as file:  # read by bench/tables.py: also has the command and the machine
        json.dump({"command": " ".join(sys.argv), "machine": machine(), "rows": rows}, file, indent=1)
    plot(rows, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="512,1024,2048,4096,8192,16384,32768")
    parser.add_argument("--patterns", default="full,window,bigbird,performer", help="patterns, separated by commas")
    parser.add_argument("--heads", default="12")
    parser.add_argument("--repeats", default="3")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM.relative_to(ROOT)} is missing: ./run build cpu bench_patterns")
    patterns = options.patterns.split(",")
    rows = []
    for length in options.lengths.split(","):
        command = [PROGRAM, "--lengths", length, "--heads", options.heads, "--repeats", options.repeats, "--threads",
                   options.threads, "--names", options.patterns]
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        rows += list(csv.DictReader(out.splitlines()))
        print(out, end="", file=sys.stderr, flush=True)
        missing = set(patterns) - {row["pattern"] for row in rows}
        if missing:
            sys.exit(f"bench_patterns measures no {', '.join(sorted(missing))}")
        write(rows, options.output)


if __name__ == "__main__":
    main()
