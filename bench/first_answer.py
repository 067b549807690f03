#!/usr/bin/env python3
"""Time from the start of the program to its first answer, and the cost of the start alone.

    bench/first_answer.py [--program build/cpu/etc ...] [--rounds 15] [--threads 2] [--output FILE.json]

A base model (12 layers, hidden size 768, vocabulary of 30,522, random weights) is made once. Each round then runs three
processes: `cat` of the weights file, `etc encode` of one short text with that model, and `etc --help`. The script
prints median and range over the rounds of wall time, CPU time and peak RSS. Several --program are compared in the same
rounds; every second round runs in reverse order. The weights are already in the page cache, so the time of `cat` is a
lower bound for reading them on this machine.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from machine import machine
from random_model import random_model

CONFIG = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
          "local_radius": 84, "relative_pos_max_distance": 12, "relative_vocab_size": 32, "vocab_size": 30522,
          "share_qkv_projections": False, "use_residual_attention": True}
TEXT = json.dumps("How long does a model take from its start to its first answer?") + "\n"


def timed(command, text=None):
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    process.stdin.write((text or "").encode())
    process.stdin.close()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}: {errors.decode()}")
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "peak_mb": usage.ru_maxrss * 1024 / 1e6}


def figures(rounds):
    return {key: [statistics.median(values := [r[key] for r in rounds]), min(values), max(values)] for key in rounds[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--model", help="existing model folder; default: a new model is made")
    parser.add_argument("--output")
    options = parser.parse_args()
    programs = options.program or [str(pathlib.Path(__file__).resolve().parents[1] / "build/cpu/etc")]
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(options.model) if options.model else random_model(
            programs[0], pathlib.Path(folder), CONFIG, records=2, long_tokens=256)
        commands = {"cat": (["cat", str(model / "model.safetensors")], None)}
        for i, program in enumerate(programs):
            name = f" {i + 1}" if len(programs) > 1 else ""
            commands["encode" + name] = ([program, "encode", "--model", str(model), "--text", "-", "--states", "mean",
                                          "--output", "-", "--threads", str(options.threads)], TEXT)
            commands["help" + name] = ([program, "--help"], None)
        rounds = {name: [] for name in commands}
        for i in range(options.rounds + 1):
            for name in list(commands) if i % 2 == 0 else reversed(list(commands)):
                took = timed(*commands[name])
                if i > 0:  # the first round is a warm-up: it loads the files into the page cache
                    rounds[name].append(took)
        result = {"machine": machine(), "processors": os.cpu_count(), "threads": options.threads, "rounds": options.rounds,
                  "command": "bench/first_answer.py " + " ".join(["--rounds", str(options.rounds), "--threads", str(options.threads)]),
                  "load": os.getloadavg()[0], "weights_mb": (model / "model.safetensors").stat().st_size / 1e6,
                  "figures": {name: figures(taken) for name, taken in rounds.items()}}
    for name, taken in result["figures"].items():
        print(f"{name:10}" + "".join(f"  {key} {value[0]:.3f} ({value[1]:.3f} to {value[2]:.3f})"
                                     for key, value in taken.items()))
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
