#!/usr/bin/env python3
"""Peak memory of the base model at several sizes (points): forecast and measured values.

    bench/memory.py [--points all|NAME,…] [--threads 1] [--repeats 1] [--output FILE.json] [--table]

Each point is one `etc benchmark` in its own process. It reports the forecast made before the computation, the ledger's
peak by purpose, and the peak RSS of the process (program and libraries included). Points run one after another, because
the largest needs most of the memory of a small machine. With --output each result is written to that file at once; a
point that the file already contains is measured again and replaced. --table prints the file without measuring. Needs
build/cpu/etc.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parents[1]
MEGABYTE = 1e6

# name: (mode, long tokens, long tokens per global token, period of activation checkpointing (0: off), layers)
POINTS = {
    "infer-1024": ("infer", 1024, 18, 0, 12),
    "infer-2048": ("infer", 2048, 18, 0, 12),
    "infer-4096": ("infer", 4096, 18, 0, 12),
    "infer-4096-512": ("infer", 4096, 8, 0, 12),  # this and the next four: 512 global tokens
    "infer-8192-512": ("infer", 8192, 16, 0, 12),
    "infer-16384-512": ("infer", 16384, 32, 0, 12),
    "infer-32768-512": ("infer", 32768, 64, 0, 12),
    "infer-65536-512": ("infer", 65536, 128, 0, 12),
    "infer-4096-24-layers": ("infer", 4096, 18, 0, 24),
    "infer-4096-36-layers": ("infer", 4096, 18, 0, 36),
    "train-1024": ("train", 1024, 18, 0, 12),
    "train-1024-checkpointed": ("train", 1024, 18, 1, 12),
    "train-2048-checkpointed": ("train", 2048, 18, 1, 12),
    "train-4096": ("train", 4096, 18, 0, 12),
    "train-4096-checkpointed": ("train", 4096, 18, 1, 12),
    "train-4096-24-layers-checkpointed": ("train", 4096, 18, 1, 24),
    "train-4096-36-layers-checkpointed": ("train", 4096, 18, 1, 36),
    "train-16384-512-checkpointed": ("train", 16384, 32, 1, 12),
}


def measure(name, residual, options):
    mode, length, tokens_per_global, period, layers = POINTS[name]
    with tempfile.TemporaryDirectory() as folder:
        config = json.loads((ROOT / "bench/peers/base.json").read_text())
        config["model"] |= {"grad_checkpointing_period": period, "num_hidden_layers": layers}
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(config))
        command = [options.program, "benchmark", "--config", path, "--mode", mode, "--lengths", length,
                   "--tokens-per-global", tokens_per_global, "--residual", residual, "--repeats", options.repeats,
                   "--threads", options.threads, "--output", folder]
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"{name}, scores {residual}: etc benchmark ended with status {status}")
        with open(pathlib.Path(folder) / "benchmark.csv") as file:
            row = next(csv.DictReader(file))
    result = {"point": name, "scores": residual, "mode": mode, "layers": layers, "checkpointing_period": period,
              "threads": options.threads, "process_peak_mb": usage.ru_maxrss * 1024 / MEGABYTE}
    return result | {key: float(value) for key, value in row.items() if key != "kind"}


def table(results):
    print(f"{'point':<34} {'scores':>6} {'L':>6} {'G':>5} {'forecast':>9} {'ledger':>9} {'process':>9} "
          f"{'score MB':>9} {'CPU s':>8}")
    for row in results:
        print(f"{row['point']:<34} {row['scores']:>6} {row['long_tokens']:>6.0f} {row['global_tokens']:>5.0f} "
              f"{row['forecast_mb']:>9.0f} {row['peak_mb'] - row['program_mb']:>9.0f} {row['process_peak_mb']:>9.0f} "
              f"{row['scores_mb']:>9.1f} {row['cpu_seconds']:>8.1f}")


def fit(points):
    """Least squares y = a + b·x over [(x, y)]; returns a, b, R²."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    base = mean_y - slope * mean_x
    residual = sum((y - base - slope * x) ** 2 for x, y in points)
    return base, slope, 1 - residual / sum((y - mean_y) ** 2 for _, y in points)


def fits(results):
    for residual in ("off", "sum"):
        rows = [row for row in results if row["scores"] == residual and row["mode"] == "infer"
                and row["global_tokens"] == 512]
        if len(rows) < 3:
            continue
        for label, key, unit in (("process peak", "process_peak_mb", "MB"), ("time", "cpu_seconds", "CPU s")):
            base, slope, r_squared = fit([(row["long_tokens"] / 1024, row[key]) for row in rows])
            print(f"inference, scores {residual}, 512 global tokens, {len(rows)} lengths: {label} = {base:.1f} {unit} + "
                  f"{slope:.3f} {unit} per 1,024 tokens, R² = {r_squared:.5f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", default="all", help="names, separated by commas: " + ", ".join(POINTS))
    parser.add_argument("--scores", default="off,sum", help="residual scores: off, sum, mean")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1, help="number of timed calls after the warm-up call")
    parser.add_argument("--program", default=str(ROOT / "build/cpu/etc"))
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--table", action="store_true", help="print the results stored in --output without measuring")
    options = parser.parse_args()
    results = json.loads(options.output.read_text())["points"] if options.output and options.output.exists() else []
    names = list(POINTS) if options.points == "all" else options.points.split(",")
    unknown = [name for name in names if name not in POINTS]
    if unknown:
        parser.error(f"unknown points: {', '.join(unknown)}")
    for name in [] if options.table else names:
        for residual in options.scores.split(","):
            fresh = measure(name, residual, options)
            results = [row for row in results if (row["point"], row["scores"]) != (name, residual)] + [fresh]
            if options.output:
                options.output.parent.mkdir(parents=True, exist_ok=True)
                options.output.write_text(json.dumps({"command": " ".join(sys.argv), "machine": machine(), "points": results},
                                                     indent=1) + "\n")
            print(f"{name}, scores {residual}: {fresh['process_peak_mb']:.0f} MB", file=sys.stderr)
    table(results)
    fits(results)


if __name__ == "__main__":
    main()
