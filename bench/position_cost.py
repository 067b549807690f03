#!/usr/bin/env python3
"""Cost of each position method in a dense encoder of base size, for inference and for a training step.

    bench/position_cost.py [--lengths 128,512] [--rounds 3] [--threads 1] [--output FOLDER]

Every measurement runs in its own process (`etc benchmark`); each round measures all methods, absolute positions
included. Writes FOLDER/position_cost.json, from which `bench/tables.py` makes a table.
`build/cpu/bench_attention --only terms` measures the attention alone.
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
ETC = ROOT / "build/cpu/etc"
BASE = {"kind": "dense", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0, "max_absolute_position_embeddings": 0}
# Label → keys of the model. Huang's tables are clipped at 16, as in sparse/RESULTS.md.
METHODS = {
    "absolute": {"max_absolute_position_embeddings": 4096},
    "Shaw, k 16": {"relative_positions": "shaw", "relative_clip": 16},
    "Shaw and values, k 16": {"relative_positions": "shaw_values", "relative_clip": 16},
    "Shaw, k 64": {"relative_positions": "shaw", "relative_clip": 64},
    "Shaw and values, k 64": {"relative_positions": "shaw_values", "relative_clip": 64},
    "T5": {"relative_positions": "t5"},
    "Transformer-XL": {"relative_positions": "transformer_xl", "relative_clip": 64},
    "Huang 1, k 16": {"relative_positions": "huang1", "relative_clip": 16},
    "Huang 2, k 16": {"relative_positions": "huang2", "relative_clip": 16},
    "Huang 3, k 16": {"relative_positions": "huang3", "relative_clip": 16},
    "Huang 4, k 16": {"relative_positions": "huang4", "relative_clip": 16},
    "NEZHA, k 64": {"relative_positions": "nezha_index", "relative_clip": 64},
}


def measure(method, mode, length, options):
    """CPU time of one call in seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "model.json").write_text(json.dumps({"model": BASE | METHODS[method]}))
        command = [ETC, "benchmark", "--config", folder / "model.json", "--lengths", str(length), "--mode", mode,
                   "--residual", "off", "--repeats", "3", "--threads", str(options.threads), "--output", folder / "out"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(folder / "out" / "benchmark.csv") as file:
            return float(next(csv.DictReader(file))["cpu_seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="128,512")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    if not ETC.exists():
        sys.exit(f"{ETC.relative_to(ROOT)} is missing: ./run build")
    lengths = [int(length) for length in options.lengths.split(",")]
    points = {(length, method, mode): [] for length in lengths for method in METHODS for mode in ("infer", "train")}
    for number in range(options.rounds):
        for (length, method, mode), seconds in points.items():
            seconds.append(measure(method, mode, length, options))
            print(f"round {number + 1}: {length} tokens, {method}, {mode}: {seconds[-1]:.3f} CPU s", file=sys.stderr,
                  flush=True)
    result = {"command": " ".join(sys.argv), "machine": machine(), "lengths": lengths, "threads": options.threads,
              "points": [{"length": length, "method": method, "mode": mode, "cpu_s": seconds}
                         for (length, method, mode), seconds in points.items()]}
    options.output.mkdir(parents=True, exist_ok=True)
    temporary = options.output / "position_cost.json.tmp"
    temporary.write_text(json.dumps(result, indent=1) + "\n")
    os.replace(temporary, options.output / "position_cost.json")


if __name__ == "__main__":
    main()
