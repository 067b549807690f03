#!/usr/bin/env python3
"""Training with several processes on this machine: time per step, bytes sent, time spent waiting for communication.

    bench/processes.py --output bench/results/processes.json [--steps 2] [--rounds 1] [--layers 12] [--tokens 4096]
                       [--batch 2] [--shapes 1x1 1x2 2x1 2x1x0]

Trains the base model of WikiHop on generated records of --tokens long tokens each, in micro-batches of one record. Each
round runs every shape once; a shape is processes x threads per process [x --bucket-bytes]. 2x1x0 sends nothing before
the backward pass has finished, so the additional waiting time compared with 2x1 is the communication that 2x1 overlaps
with the backward pass. Step times come from the log of the run, so they exclude start-up and loading of data; the first
step is not counted. The script fails unless all runs end with equal weights.
"""
import argparse
import hashlib
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parents[1]
ETC = ROOT / "build/cpu/etc"
SHAPES = ["1x1", "1x2", "2x1", "2x1x0"]


def filled(records, tokens):
    """Extends the text of each record with those of the following records until it has more than `tokens` tokens, and
    joins every five sentences to one. `etc prepare` then truncates all records to the same length, so that all
    processes have equal work."""
    texts = [" ".join(record["supports"]) for record in records]
    for index, record in enumerate(records):
        words, source = [], itertools.cycle(texts[index:] + texts[:index])
        while len(words) < 2 * tokens:
            words += next(source).split()
        ends = [at for at, word in enumerate(words) if word.endswith(".")]
        for count, at in enumerate(ends):
            if count % 5 != 4:
                words[at] = words[at].rstrip(".")
        record["supports"] = [" ".join(words)]
    return records


def prepared(folder, tokens):
    """A data set of generated records with `tokens` long tokens each."""
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    sample, data, full = folder / "sample", folder / "train.h5", folder / "train.json"
    subprocess.run([ETC, "sample", "--task", "wikihop", "--records", "40", "--seed", "1", "--hops", "1", "--output", sample],
                   **quiet)
    full.write_text(json.dumps(filled(json.loads((sample / "train.json").read_text()), tokens)))
    subprocess.run([ETC, "prepare", "--task", "wikihop", "--split", "train", "--input", full, "--vocab", sample / "vocab.txt",
                    "--splitter", "icu", "--long-seq-len", str(tokens), "--output", data], **quiet)
    return data


def trained(data, run, shape, options):
    """Seconds of each step except the first, communication figures from the log, and the hash of the final weights."""
    processes, threads, *bucket = (int(word) for word in shape.split("x"))
    launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(processes)] if processes > 1 else []
    if launcher and os.geteuid() == 0:
        launcher.append("--allow-run-as-root")
    command = [ETC, "train", "--config", ROOT / "tasks/configs/wikihop_base.json", "--data", data, "--batch-size", str(options.batch),
               "--micro-batch-tokens", "1", "--steps", str(options.steps + 1), "--log-every", "1", "--save-every", "1000",
               "--threads", str(threads), "--num-hidden-layers", str(options.layers), "--output", run]
    if bucket:
        command += ["--bucket-bytes", str(bucket[0])]
    subprocess.run(launcher + command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    times = [line["time"] for line in lines if line["kind"] == "train"]
    sent = re.search(r"sent ([\d.]+) MB a step, none more than ([\d.]+) MB, and waited for it for up to ([\d.]+) s",
                     (run / "log.txt").read_text())
    return {"step_s": [round(b - a, 3) for a, b in zip(times, times[1:])],
            "sent_mb": float(sent[1]) if sent else 0.0, "most_of_one_mb": float(sent[2]) if sent else 0.0,
            "waiting_s": float(sent[3]) if sent else 0.0,
            "weights": hashlib.sha256((run / "last/model.safetensors").read_bytes()).hexdigest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="JSON file for the results")
    for name, default in (("steps", 2), ("rounds", 1), ("layers", 12), ("tokens", 4096),
                          ("batch", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--shapes", nargs="+", default=SHAPES)
    options = parser.parse_args()
    rows = {shape: [] for shape in options.shapes}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = prepared(folder, options.tokens)
        for turn in range(options.rounds):
            for shape in options.shapes:
                rows[shape].append(trained(data, folder / f"run{turn}_{shape}", shape, options))
    weights = {run["weights"] for runs in rows.values() for run in runs}
    if len(weights) != 1:
        raise SystemExit("the runs do not end with the same weights")
    result = {"machine": machine(), "layers": options.layers, "tokens": options.tokens, "batch": options.batch, "steps": options.steps,
              "rounds": options.rounds, "rows": []}
    for shape, runs in rows.items():
        steps = [seconds for run in runs for seconds in run["step_s"]]
        result["rows"].append({"shape": shape, "step_s": statistics.median(steps),
                               "least_s": min(steps), "most_s": max(steps),
                               "sent_mb": runs[0]["sent_mb"], "most_of_one_mb": runs[0]["most_of_one_mb"],
                               "waiting_s": min(run["waiting_s"] for run in runs)})
        print("{shape}: {step_s:.2f} s a step ({least_s:.2f} to {most_s:.2f}), {sent_mb:.1f} MB sent, "
              "{most_of_one_mb:.1f} MB by one process at most, {waiting_s:.2f} s waited".format(**result["rows"][-1]))
    pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
