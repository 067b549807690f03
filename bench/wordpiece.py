#!/usr/bin/env python3
"""Compares the CPU time of WordPiece in bench_text with that of the Python package `tokenizers` on the same text; one
thread each, in alternating runs.

  bench/wordpiece.py --vocab vocab.txt --input documents.txt [--turns 5] [--program build/cpu/bench_text]

Every line of the input is a document. Both programs produce only token ids; the numbers of ids must be equal. The
package (pip install tokenizers) is needed for this comparison only; without it nothing is measured. It is measured in
two ways: all documents in one call (its fastest way), and one call per document.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--input", required=True)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--program", default="build/cpu/bench_text")
    return parser.parse_args()


def main():
    given = options()
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "prepare_python"))
    try:
        import tokenizers
        from wordpiece_tokenizer import load_tokenizer
    except ImportError:
        print("wordpiece: skipped, the Python package tokenizers is not installed (pip install tokenizers)")
        return 0
    # Split at line feeds only, as bench_text does.
    with open(given.input, "rb") as file:
        data = file.read()
    lines = data.split(b"\n")
    documents = [line.decode() for line in (lines[:-1] if data.endswith(b"\n") else lines)]
    tokenizer = load_tokenizer(given.vocab)
    # Produces ids without offsets, where this version supports it.
    batch = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)

    def in_one_call():
        return sum(len(found.ids) for found in batch(documents, add_special_tokens=False))

    def one_by_one():
        return sum(len(tokenizer.encode(text, add_special_tokens=False).ids) for text in documents)

    def timed(work):
        begin = time.process_time()
        count = work()
        return len(data) / (time.process_time() - begin) / 1e6, count

    def ours():
        command = [given.program, "--vocab", given.vocab, "--input", given.input, "--repeat", "1"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = re.search(r"^wordpiece: ([0-9.]+) MB/s.* (\d+) produced$", text, re.MULTILINE)
        return float(found[1]), int(found[2])

    names = ["etc, encode_ids", f"tokenizers {tokenizers.__version__}, one call",
             f"tokenizers {tokenizers.__version__}, call per line"]
    speeds = {name: [] for name in names}
    counts = {}
    for _ in range(given.turns):
        for name, work in zip(names, (ours, lambda: timed(in_one_call), lambda: timed(one_by_one))):
            speed, counts[name] = work()
            speeds[name].append(speed)
    print(f"{len(documents)} documents, {len(data)} bytes, {given.turns} turns, one thread each")
    first = statistics.median(speeds[names[0]])
    for name in names:
        median = statistics.median(speeds[name])
        print(f"{name:34} {median:7.1f} MB/s ({min(speeds[name]):.1f} to {max(speeds[name]):.1f}), "
              f"{counts[name]} ids, etc is {first / median:.2f} times as fast")
    if len(set(counts.values())) != 1:
        print("wordpiece: the numbers of ids differ", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
