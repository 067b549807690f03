#!/usr/bin/env python3
"""Compares the CPU time of `etc prepare` with that of a Python preparation that writes the same features; one thread
each, in alternating runs.

  python3 bench/prepare_python --task openkp --input train.jsonl --vocab vocab.txt [--turns 3] [--program build/cpu/etc]

Each task has a module that does what the published preparation does (see README.md), with the package
`tokenizers` for WordPiece, numpy for the arrays and h5py for the file (pip install tokenizers numpy h5py). Its features
are then compared with those of `etc prepare`, every number of every example; the exit code is 1 if they differ.
Pre-training examples are random, so they are compared as pretrain.py describes.

The Python preparation is measured in three variants: with the file, without writing the file, and only the token ids of
the same texts (one call per record). The times exclude start-up and imports of Python but include the start-up of
`etc`.
"""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

try:
    import glue
    import hotpotqa
    import nq
    import openkp
    import pretrain
    import squad
    import store
    from wordpiece_tokenizer import load_tokenizer
except ImportError as missing:
    print(f"prepare_python: skipped, {missing} (pip install tokenizers numpy h5py)")
    sys.exit(0)

TASKS = {"glue": glue.Preparation, "hotpotqa": hotpotqa.Preparation, "nq": nq.Preparation, "openkp": openkp.Preparation,
         "pretrain": pretrain.Preparation, "squad": squad.Preparation}


def write_features(preparation, path, output):
    with store.Writer(output, preparation.FEATURES) as writer:
        for example in preparation.examples(path):
            writer.append(example)


def make_features(preparation, path):
    for _ in preparation.examples(path):
        pass


def make_tokens(preparation, path):
    for record in preparation.records(path):
        preparation.encode(record)


def prepare_with_etc(given, preparation, output):
    options = getattr(preparation, "OPTIONS", ["--parity", "reference"])
    if hasattr(preparation, "options"):  # options that depend on the input file
        options = preparation.options(given.input)
    command = [given.program, "prepare", "--task", given.task, "--split", "train", "--input", given.input, "--vocab",
               given.vocab, *options, "--threads", "1", "--max-rejects", "1000000", "--output", output]
    subprocess.run(command, check=True, capture_output=True)


def seconds_of_child(work):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    start = used()
    work()
    return used() - start


def seconds_of(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", required=True, choices=sorted(TASKS))
    parser.add_argument("--input", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--program", default="build/cpu/etc")
    given = parser.parse_args()

    preparation = TASKS[given.task](load_tokenizer(given.vocab))
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "etc.h5"), os.path.join(folder, "python.h5")
        measured = {
            "etc prepare": lambda: seconds_of_child(lambda: prepare_with_etc(given, preparation, ours)),
            "Python, features and file": lambda: seconds_of(lambda: write_features(preparation, given.input, theirs)),
            "Python, features, no file": lambda: seconds_of(lambda: make_features(preparation, given.input)),
            "Python, token ids alone": lambda: seconds_of(lambda: make_tokens(preparation, given.input)),
        }
        times = {name: [] for name in measured}
        for _ in range(given.turns):
            for name, measure in measured.items():
                times[name].append(measure())
        if hasattr(preparation, "compare"):  # a preparation with random examples
            examples, differences = preparation.compare(theirs, ours, given)
        else:
            examples, differences = store.compare(theirs, ours, preparation.FEATURES)

    megabytes = os.path.getsize(given.input) / 1e6
    print(f"{given.task}: {examples} examples, {megabytes:.1f} MB; medians of {given.turns} turns, one thread, "
          "processor time")
    for name, seconds in times.items():
        ratios = sorted(s / e for s, e in zip(seconds, times["etc prepare"]))
        print(f"{name:26} {statistics.median(seconds):7.2f} s {megabytes / statistics.median(seconds):7.2f} MB/s "
              f"{statistics.median(ratios):6.1f} times etc's time ({ratios[0]:.1f} to {ratios[-1]:.1f})")
    for difference in differences:
        print(f"prepare_python: {difference}", file=sys.stderr)
    equal = "agree" if hasattr(preparation, "compare") else f"all {len(preparation.FEATURES)} equal in every example"
    print("features: " + ("DIFFERENT" if differences else equal))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
