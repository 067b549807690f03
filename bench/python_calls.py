#!/usr/bin/env python3
"""Cost of a call from Python, compared with the same call within the program.

    bench/python_calls.py --program build/cpu/etc [--tokens 4096] [--rounds 20] [--threads 1] [--model FOLDER]
                          [--output FILE.json]

Needs an interpreter that has `longetc` (tasks/python/README.md). Encodes one text of --tokens tokens to its mean state:
with Model.encode, and with a running `etc encode --text - --states mean` that reads the text as a line. Each round runs
both; the order alternates between rounds. The script prints the median wall and CPU seconds of both, and the median
over the rounds of their ratio. Without --model, a model of 6 layers and hidden size 256 with random weights is made.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import longetc

from machine import machine
from random_model import random_model

CONFIG = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 1024, "local_radius": 84,
          "relative_pos_max_distance": 12, "relative_vocab_size": 32, "use_residual_attention": True,
          "vocab_size": 512}


def text_of(model, tokens):
    """Sentences of 15 vocabulary words (one token each) and a full stop, 16 tokens per sentence, to fill `tokens`."""
    words = [piece for piece in (model.tokenizer.piece(i) for i in range(len(model.tokenizer))) if piece.isalpha()]
    draw = random.Random(1)
    sentences = []
    for _ in range(tokens // 16):
        sentences.append(" ".join(draw.choice(words) for _ in range(15)).capitalize() + ".")
    return " ".join(sentences)


class Program:
    def __init__(self, program, model, threads, tokens):
        self.process = subprocess.Popen([program, "encode", "--text", "-", "--model", model, "--states", "mean", "--output", "-",
                                         "--threads", str(threads), "--max-long-tokens", str(tokens)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def call(self, text):
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("the program ended")
        return json.loads(answer)

    def timed(self, text):
        cpu, begin = self.cpu(), time.perf_counter()
        self.call(text)
        return time.perf_counter() - begin, self.cpu() - cpu


def timed_python(model, text):
    cpu, begin = time.process_time(), time.perf_counter()
    model.encode(text, states="mean")
    return time.perf_counter() - begin, time.process_time() - cpu


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model")
    parser.add_argument("--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = options.model or random_model(options.program, pathlib.Path(folder), CONFIG)
        longetc.set_threads(options.threads)
        model = longetc.load(folder, max_long_tokens=options.tokens)
        text = text_of(model, options.tokens)
        program = Program(options.program, folder, options.threads, options.tokens)
        ours = model.encode(text, states="mean")
        theirs = program.call(text)
        assert theirs["tokens"]["read"] == ours.read[0], (theirs["tokens"], ours.read)
        program.call(text)
        rounds = []
        for i in range(options.rounds):
            times = {}
            for who in ("python", "program") if i % 2 == 0 else ("program", "python"):
                times[who] = timed_python(model, text) if who == "python" else program.timed(text)
            rounds.append(times)
        program.process.stdin.close()
        program.process.wait()

    def medians(which):
        return [statistics.median(times[who][which] for times in rounds) for who in ("python", "program")] + [
            statistics.median(times["python"][which] / times["program"][which] for times in rounds)]
    result = {"machine": machine(), "tokens": int(ours.read[0]), "threads": options.threads, "rounds": options.rounds}
    for which, name in enumerate(("seconds", "cpu_seconds")):
        result[name] = dict(zip(("python", "program", "ratio"), medians(which)))
        print("{:12} python {python:.4f}  program {program:.4f}  median of ratios {ratio:.4f}".format(name, **result[name]))
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
