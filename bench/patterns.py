#!/usr/bin/env python3
"""Attention against length in every pattern and linearly: time and memory of one layer, as CSV and in one picture.

    bench/patterns.py [--lengths 512,…,32768] [--patterns full,window,bigbird,performer] [--heads 12] [--repeats 3]
                      [--threads 1] [--output FOLDER]

Runs build/cpu/bench_patterns once for each length and after each writes what there is: patterns.csv, patterns.json and,
where gnuplot is installed, patterns.svg, with processor seconds of forward and backward on the left, bytes of scratch and
of what forward keeps on the right. `bench/tables.py` makes the table of RESULTS.md from bench/results/patterns.json.
"""
import argparse
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/cpu/bench_patterns"


def plot(rows, folder):
    patterns = list(dict.fromkeys(row["pattern"] for row in rows))
    blocks, names = [], []
    for number, pattern in enumerate(patterns):
        points = [f"{row['tokens']} {float(row['forward_s']) + float(row['backward_s'])} "
                  f"{max(int(row['forward_bytes']), int(row['backward_bytes'])) / 1e6}"
                  for row in rows if row["pattern"] == pattern]
        blocks.append(f"$d{number} << EOD\n" + "\n".join(points) + "\nEOD\n")
        names.append((f"$d{number}", pattern))

    def lines(column):
        return ", ".join(f"{data} using 1:{column} with linespoints title '{name}' noenhanced" for data, name in names)

    script = "".join(blocks) + (
        "set terminal svg size 1100,500 background 'white'\nset output 'patterns.svg'\nset multiplot layout 1,2\n"
        "set logscale xy\nset logscale x 2\nset key top left\nset title 'one attention by pattern'\nset xlabel 'tokens'\n"
        f"set ylabel 'processor seconds, forward and backward'\nplot {lines(2)}\n"
        f"set ylabel 'MB of scratch and kept'\nplot {lines(3)}\nunset multiplot\n")
    subprocess.run(["gnuplot"], input=script, text=True, cwd=folder, check=True)


def write(rows, folder):
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "patterns.csv.tmp"
    with open(temporary, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(temporary, folder / "patterns.csv")
    with open(folder / "patterns.json", "w") as file:  # what the table says beside the numbers
        json.dump({"command": " ".join(sys.argv), "machine": machine(), "rows": rows}, file, indent=1)
    if shutil.which("gnuplot"):
        plot(rows, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="512,1024,2048,4096,8192,16384,32768")
    parser.add_argument("--patterns", default="full,window,bigbird,performer", help="of bench_patterns")
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
