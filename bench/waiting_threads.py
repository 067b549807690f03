#!/usr/bin/env python3
"""Cost of waiting threads: training with one and two threads, alone on the machine and beside other programs.

    bench/waiting_threads.py --output bench/results/waiting_threads.json [--steps 200] [--rounds 5] [--old PROGRAM]

Trains `wikihop_tiny` on generated records. Each round runs every variant once: one thread; two threads with the default
settings; two threads that run every loop on both (OMP_DYNAMIC=false); and the last variant with threads that sleep at
once (GOMP_SPINCOUNT=0) and with threads that spin-wait (OMP_WAIT_POLICY=active). --old adds another build of the
program with one and two threads. All variants run beside none, one, two and four programs that compute in an endless
loop (--beside).
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from machine import machine

ROOT = pathlib.Path(__file__).resolve().parents[1]
ETC = ROOT / "build/cpu/etc"
SETTINGS = ("GOMP_SPINCOUNT", "OMP_DYNAMIC", "OMP_WAIT_POLICY", "OMP_NUM_THREADS", "OMP_PROC_BIND", "OMP_PLACES")


def prepared(folder, etc):
    """A data set of generated records."""
    sample = folder / "sample"
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([etc, "sample", "--task", "wikihop", "--records", "2000", "--seed", "1", "--hops", "1", "--output",
                    sample], **quiet)
    data = folder / "train.h5"
    subprocess.run([etc, "prepare", "--task", "wikihop", "--split", "train", "--input", sample / "train.json", "--vocab",
                    sample / "vocab.txt", "--splitter", "icu", "--output", data], **quiet)
    return data


def trained(program, data, folder, threads, steps, settings):
    """Wall and CPU time of one training process: {"wall_s", "cpu_s"}."""
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS} | settings
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([program, "train", "--config", ROOT / "tasks/configs/wikihop_tiny.json", "--data", data, "--steps",
                    str(steps), "--save-every", str(steps), "--threads", str(threads), "--output", folder],
                   check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"wall_s": round(wall, 3),
            "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3)}


class OtherPrograms:
    """Runs `count` programs that compute in an endless loop until the `with` block ends."""

    def __init__(self, count):
        self.count, self.running = count, []

    def __enter__(self):
        self.running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.count)]

    def __exit__(self, *error):
        for program in self.running:
            program.kill()
            program.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="JSON file for the results")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", type=int, nargs="*", default=[0, 1, 2, 4], help="numbers of other running programs")
    parser.add_argument("--old", help="another build of the program")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    both = {"OMP_DYNAMIC": "false"}
    ways = [("one thread", ETC, 1, {}), ("two threads", ETC, 2, {}), ("two threads, OMP_DYNAMIC=false", ETC, 2, both),
            ("the same, GOMP_SPINCOUNT=0", ETC, 2, {**both, "GOMP_SPINCOUNT": "0"}),
            ("the same, OMP_WAIT_POLICY=active", ETC, 2, {**both, "OMP_WAIT_POLICY": "active"})]
    if options.old:
        ways += [("one thread, other program", options.old, 1, {}), ("two threads, other program", options.old, 2, {})]
    points = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = prepared(folder, ETC)
        for beside in options.beside:
            rounds = {way: [] for way, *_ in ways}
            with OtherPrograms(beside):
                for number in range(options.rounds):
                    for turn, (way, program, threads, settings) in enumerate(ways):
                        output = folder / f"run-{beside}-{number}-{turn}"
                        rounds[way].append(trained(program, data, output, threads, options.steps, settings))
            for way, measured in rounds.items():
                points.append({"beside": beside, "way": way, "rounds": measured})
                print(f"beside {beside}: {way}: " + ", ".join(f"{r['wall_s']:.2f}" for r in measured), flush=True)
    command = "bench/waiting_threads.py " + " ".join(
        argument for argument in sys.argv[1:] if argument not in ("--old", options.old))
    result = {"command": command, "machine": machine(), "processors": len(os.sched_getaffinity(0)),
              "load_before": load, "steps": options.steps, "points": points}
    temporary = pathlib.Path(options.output + ".partial")
    temporary.write_text(json.dumps(result, indent=1) + "\n")
    os.replace(temporary, options.output)


if __name__ == "__main__":
    main()
