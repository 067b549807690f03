#!/usr/bin/env python3
"""Attention alone: the operators of this project and oneDNN's products (bench_attention), compared with PyTorch's
scaled_dot_product_attention in interleaved runs.

    VENV/bin/python bench/peers/attention.py --rounds 3 --output bench/results

4,096 tokens, 12 heads of size 64; the pattern is a window of radius 84 and 230 global tokens. PyTorch runs full
attention without a mask, which is its fastest variant, and with the pattern as a mask; on a CPU it computes all scores
in both cases. Rates count only the operations that the pattern needs (see bench_attention), so a program that computes
more has a lower rate. One thread, CPU time; the results are medians over the rounds.
"""
import argparse
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import time

from compare import ROOT, median  # must be first: it adds the folder of the next two imports to the path
from machine import machine
from tables import attention_table

LENGTH, HEADS, HEAD_SIZE, RADIUS, GLOBALS = 4096, 12, 64, 84, 230


def engine(rates):
    """One run of bench_attention; adds {line: GFLOP/s}."""
    out = subprocess.run([ROOT / "build/cpu/bench_attention", "--csv", "--cpu-time", "--threads", "1", "--repeats", "3"],
                         capture_output=True, text=True, check=True, env=dict(os.environ, OMP_WAIT_POLICY="passive"))
    # The lines of oneDNN's block GEMMs do not name their case: the first two are window only, the others have globals.
    blocks = 0
    for row in csv.DictReader(io.StringIO(out.stdout)):
        name = row["what"]
        if name.startswith("oneDNN products"):
            name += ", 230 globals" if blocks >= 2 else ", window only"
            blocks += 1
        rates.setdefault(name, []).append(float(row["gflops"]))


def useful_operations(products):
    window = LENGTH * (2 * RADIUS + 1) - RADIUS * (RADIUS + 1)
    return 2.0 * products * HEAD_SIZE * HEADS * (window + LENGTH * GLOBALS)


def torch_lines(torch):
    """{line: (function, useful operations)}"""
    from torch.nn.functional import scaled_dot_product_attention as attention

    torch.set_num_threads(1)
    place = torch.arange(LENGTH)
    mask = ((place[:, None] - place[None]).abs() <= RADIUS) | (place[None] < GLOBALS)
    lines = {}
    for number_type in (torch.float32, torch.bfloat16):
        q, k, v = (torch.randn(1, HEADS, LENGTH, HEAD_SIZE).to(number_type).requires_grad_() for _ in range(3))
        for label, argument in (("full", None), ("mask", mask)):
            def forward(q=q, k=k, v=v, argument=argument):
                with torch.no_grad():
                    attention(q, k, v, attn_mask=argument)

            name = f"PyTorch SDPA, {label}, {str(number_type).removeprefix('torch.')}"
            lines[name + ": forward"] = (forward, useful_operations(2))
            if number_type == torch.float32:
                def both(q=q, k=k, v=v, argument=argument):
                    attention(q, k, v, attn_mask=argument).sum().backward()

                lines[name + ": forward and backward"] = (both, useful_operations(7))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("comparison"))
    options = parser.parse_args()
    os.environ["OMP_WAIT_POLICY"] = "passive"
    import torch

    lines, rates = torch_lines(torch), {}
    for function, _ in lines.values():
        function()
    for _ in range(options.rounds):
        engine(rates)
        for name, (function, operations) in lines.items():
            start = time.process_time()
            function()
            rates.setdefault(name, []).append(operations / (time.process_time() - start) * 1e-9)
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / "attention.json", "w") as file:
        json.dump({"machine": machine(), "torch": torch.__version__, "gflops": rates}, file, indent=1)
    print("\n".join(attention_table("attention.json", options.output)))


if __name__ == "__main__":
    sys.exit(main())
