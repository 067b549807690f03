#!/usr/bin/env python3
"""Roofline model of the CUDA backend: a lower bound for the time of every pass on a GPU. Nothing is run.

    bench/gpu_roofline.py [--length 4096] [--batch 8] [--tflops 989] [--bandwidth 4.8] [--output FOLDER]

A pass reads and writes the arrays that the comment of its kernel states (etc_core/ops/cuda, sparse/cuda), each array
once; additional traffic by cache misses is not counted. The time of a pass is at least the larger of operations / rate
and bytes / bandwidth. Passes run one after another on one stream, so their times add up. The rates are those of the
H200 data sheet: dense bf16 tensor cores and HBM3e. Model: base size, bf16, radius 84, one global token per 18 long
tokens, 32 labels, dense g2l.

`as it is`: the passes of the present program. Products, norms and attention write bf16 where the next reader is a
product or attention, in the rows that it reads.
`all in fp32`: the same with every activation and gradient in fp32 and with separate passes that round the operands, as
in an earlier version of the program.

Writes FOLDER/gpu_roofline.csv (one line per pass of a layer, forward and backward) and FOLDER/gpu_roofline_model.csv
(inference and training steps of the whole model).
"""
import argparse
import csv
import pathlib
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
H, F, N, D, R, LAYERS, RADIUS = 768, 3072, 12, 64, 32, 12, 84
FP32, BF16 = 4, 2
RELATIVE_ROWS = 128  # queries of a partial sum of the tables' gradients (sparse/cuda/score_terms.h)
SPLIT_KEYS = 512  # keys per work item if the keys are split: 8 tiles of 64 (sparse/cuda/attention_plan.cpp)


@dataclass
class Pass:
    name: str
    flops: float
    fp32: float  # bytes moved, all activations in fp32
    now: float   # bytes moved by the present program; None: it has no such pass

    def seconds(self, moved, gpu):
        return 0.0 if moved is None else max(self.flops / gpu.flops, moved / gpu.bandwidth)


@dataclass
class Gpu:
    flops: float
    bandwidth: float


class Sizes:
    """T long and U global tokens of a batch; (query, key) pairs of both attention operators."""

    def __init__(self, length, batch):
        globals_of_one = length // 18
        self.long, self.globals = batch * length, batch * globals_of_one
        self.rows = self.long + self.globals
        seen = 2 * RADIUS + 1
        self.pairs_long = batch * length * (seen + globals_of_one)
        self.pairs_global = batch * globals_of_one * (length + globals_of_one)
        self.splits = -(-length // SPLIT_KEYS) + 1


def convert(name, numbers):
    return Pass(name, 0, (FP32 + BF16) * numbers, None)


def repeated(one, times):
    """`times` equal passes, one after another, as one line."""
    return Pass(one.name, times * one.flops, times * one.fp32, None if one.now is None else times * one.now)


def product(name, rows, inner, cols, writes_bf16, added=False):
    """y [rows, cols] = x·W, or y += x·W, which also reads y."""
    read, results = BF16 * (rows * inner + inner * cols), (2 if added else 1) * rows * cols
    return Pass(name, 2 * rows * inner * cols, read + FP32 * results, read + (BF16 if writes_bf16 else FP32) * results)


def gradients_added(name, numbers):
    """a += b: a gradient of two readers, of which each made its own array."""
    return Pass(name, 0, 3 * FP32 * numbers, 3 * BF16 * numbers)


def norm(name, rows, training):
    """Sum of two arrays (stored for backward) and layer norm. The present program also writes a bf16 copy of y for the
    next product."""
    arrays = 4 if training else 3
    return Pass(name, 0, arrays * FP32 * rows * H, (arrays * FP32 + BF16) * rows * H)


def attention_forward(side, queries, keys, pairs, splits):
    """Passes of one attention operator: convert, table, forward, combine."""
    operands = H * (queries + 2 * keys)
    table, lse, slots = FP32 * queries * N * R, FP32 * queries * N, FP32 * splits * queries * N * (D + 2)
    kernel = BF16 * operands + table + lse
    passes = [convert(f"{side}: q, k, v to bf16", operands),
              Pass(f"{side}: table of relative terms", 2 * queries * N * R * D, FP32 * queries * H + table,
                   BF16 * queries * H + table)]
    if splits == 0:
        passes.append(Pass(f"{side}: forward", 4 * D * N * pairs, kernel + FP32 * queries * H, kernel + BF16 * queries * H))
    else:
        passes += [Pass(f"{side}: forward, split keys", 4 * D * N * pairs, kernel + slots, kernel + slots),
                   Pass(f"{side}: combine", 0, slots + FP32 * queries * H, slots + BF16 * queries * H)]
    return passes


def attention_backward(side, queries, keys, pairs, splits):
    """Two kernels with four and three products instead of one kernel with five, so that no thread block has to add to
    the results of another one."""
    operands, rows = H * (queries + 2 * keys), H * queries
    table, labels = FP32 * queries * N * R, FP32 * queries * N * R
    slots = FP32 * splits * queries * N * (D + R)
    partial = 2 * FP32 * -(-queries // RELATIVE_ROWS) * N * R * (D + 1)  # of the tables' gradients: written, read
    read = BF16 * (operands + rows) + table + 2 * FP32 * queries * N
    return [convert(f"{side}: q, k, v, dout to bf16", operands + rows),
            Pass(f"{side}: table of relative terms again", 2 * queries * N * R * D, FP32 * rows + table,
                 BF16 * rows + table),
            Pass(f"{side}: delta", 0, 2 * FP32 * rows, 2 * BF16 * rows),
            Pass(f"{side}: gradients of keys and values", 8 * D * N * pairs, read + FP32 * 2 * H * keys,
                 read + BF16 * 2 * H * keys),
            Pass(f"{side}: gradients of queries", 6 * D * N * pairs, read + FP32 * rows + labels + slots,
                 read + BF16 * rows + labels + slots),
            Pass(f"{side}: label sums to dq and tables", 4 * queries * N * R * D, labels + 3 * FP32 * rows + slots + partial,
                 labels + 3 * BF16 * rows + slots + partial)]


def layer_forward(s, training):
    m = s.rows
    passes = [convert("x to bf16, for q, k, v", m * H), product("q, k, v = x·W", m, H, 3 * H, True)]
    if training:
        # Three GEMMs, which each read x (and in fp32 each round it), because gradients of keys and values may be absent.
        passes = [repeated(passes[0], 3), repeated(product("q, k, v = x·W", m, H, H, True), 3)]
    passes += attention_forward("long", s.long, s.rows, s.pairs_long, 0)
    passes += attention_forward("global", s.globals, s.rows, s.pairs_global, s.splits)
    passes += [convert("attention's output to bf16", m * H), product("output projection", m, H, H, False),
               norm("sum and norm behind attention", m, training), convert("x to bf16, for the feed-forward", m * H),
               product("first feed-forward product" + ("" if training else ", gelu"), m, H, F, True)]
    if training:
        passes.append(Pass("gelu(z)", 0, 2 * FP32 * m * F, 2 * BF16 * m * F))  # z is stored
    passes += [convert("gelu(z) to bf16", m * F), product("second feed-forward product", m, F, H, False),
               norm("sum and norm behind the feed-forward", m, training)]
    if training:
        passes.append(weights_rounded(4 * H * H + 2 * H * F))
    return passes


def weights_rounded(numbers):
    return Pass("weights to bf16", 0, (FP32 + BF16) * numbers, (FP32 + BF16) * numbers)


def dense_backward(name, rows, inner, cols, dx_bf16, added=False):
    """Backward of y [rows, cols] = x [rows, inner]·W: dz, x and W to bf16, dx = dz·Wᵀ, dW += xᵀ·dz, db. added: dx is
    added to a gradient of x that the norm has written."""
    return [convert(f"{name}: dz, x to bf16", rows * cols + rows * inner), weights_rounded(inner * cols),
            product(f"{name}: dx", rows, cols, inner, dx_bf16, added),
            Pass(f"{name}: dW", 2 * rows * inner * cols, BF16 * rows * (inner + cols) + 2 * FP32 * inner * cols,
                 BF16 * rows * (inner + cols) + 2 * FP32 * inner * cols),
            Pass(f"{name}: db", 0, FP32 * rows * cols, BF16 * rows * cols)]


def norm_backward(name, rows):
    """Two kernels read dy and s. One computes the gradients of scale and shift; the other computes ds and writes it as
    the gradient of x, the first of that array, and as the gradient of the branch."""
    return Pass(name, 0, 6 * FP32 * rows * H, (5 * FP32 + BF16) * rows * H)


def layer_backward(s):
    m = s.rows
    passes = [norm_backward("norm behind the feed-forward, backward", m)]
    passes += dense_backward("second feed-forward product", m, F, H, True)
    passes += [Pass("gelu(z) again, its slope", 0, 5 * FP32 * m * F, 5 * BF16 * m * F)]
    passes += dense_backward("first feed-forward product", m, H, F, False, added=True)
    passes += [norm_backward("norm behind attention, backward", m)]
    passes += dense_backward("output projection", m, H, H, True)
    passes += attention_backward("long", s.long, s.rows, s.pairs_long, 0)
    passes += attention_backward("global", s.globals, s.rows, s.pairs_global, s.splits)
    # Both operators read the keys and values of all tokens; each writes gradients of its own.
    passes += [gradients_added("gradients of k and v of the two operators added", 2 * m * H)]
    passes += [repeated(one, 3) for one in dense_backward("q, k, v", m, H, H, False, added=True)]
    return passes


def useful_flops(s, training):
    """Operations of a layer: the dense products, and per visible pair two products in forward and five in backward."""
    dense = 2 * s.rows * (4 * H * H + 2 * H * F)
    attention = 2 * D * N * (s.pairs_long + s.pairs_global)
    return 3 * dense + 7 * attention if training else dense + 2 * attention


def write(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tflops", type=float, default=989, help="peak rate of dense bf16 products, TFLOP/s")
    parser.add_argument("--bandwidth", type=float, default=4.8, help="memory bandwidth, TB/s")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results")
    options = parser.parse_args()
    gpu = Gpu(options.tflops * 1e12, options.bandwidth * 1e12)

    sizes = Sizes(options.length, options.batch)
    rows = []
    for part, passes in (("forward", layer_forward(sizes, True)), ("backward", layer_backward(sizes))):
        for p in passes:
            milliseconds = [f"{1e3 * p.seconds(moved, gpu):.3f}" for moved in (p.fp32, p.now)]
            moved = p.fp32 if p.now is None else p.now
            bound = "bytes" if moved / gpu.bandwidth > p.flops / gpu.flops else "operations"
            rows.append([part, p.name, f"{p.flops / 1e9:.0f}", f"{p.fp32 / 1e6:.0f}",
                         "" if p.now is None else f"{p.now / 1e6:.0f}", bound, *milliseconds])
    write(options.output / "gpu_roofline.csv", ["pass", "of a layer", "GFLOP", "MB, all in fp32", "MB, as it is",
                                                "bound by", "ms, all in fp32", "ms, as it is"], rows)

    rows = []
    for length in (4096, 8192, 16384, 32768):
        s = Sizes(length, max(1, options.batch * options.length // length))
        for training in (False, True):
            passes = layer_forward(s, training) + (layer_backward(s) if training else [])
            useful = useful_flops(s, training)
            line = ["training step" if training else "inference", f"{length} x {s.long // length}"]
            for moved in ("fp32", "now"):
                seconds = sum(p.seconds(getattr(p, moved), gpu) for p in passes)
                line += [f"{LAYERS * 1e3 * seconds:.1f}", f"{100 * useful / seconds / gpu.flops:.0f} %"]
            rows.append(line)
    write(options.output / "gpu_roofline_model.csv",
          ["layers of base size", "tokens x texts", "ms at least, all in fp32", "of the bf16 peak at most",
           "ms at least, as it is", "of the peak at most"], rows)


if __name__ == "__main__":
    main()
