#!/usr/bin/env python3
"""Time and memory of `etc` and of widely used encoders (peers), measured in one interleaved run.

    python3 -m venv VENV && VENV/bin/pip install torch transformers onnxruntime onnx onnxscript openvino nncf
    VENV/bin/python bench/peers/compare.py --lengths 512,1024,2048,4096 --types fp32,bf16,int8 --output comparison

Every measurement runs in its own process. A round measures all programs at one length before the next length. The
results are medians over the rounds of CPU time per call (wall time depends on other load of the machine) and of the
peak RSS of the process. Needs build/cpu/etc. All programs run a batch of one at base size (peer.py) with random
weights. ETC's global tokens are additional to the long tokens, 230 per 4,096; running scores are measured in the first
number type only. A peer `name:bf16@N` runs in bf16, up to N tokens. BERT in inference runtimes (`onnxruntime`,
`openvino`: fp32, int8) and `lfm2` run only if named. With --budget, a measurement that is not expected to finish in
time is not started; skipped ones are listed.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from machine import machine  # noqa: E402
from picture import Curve, Panel, draw  # noqa: E402
from tables import NAMES, Comparison, comparison_table, median  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ["bert", "flex", "modernbert", "longt5", "longformer", "bigbird", "lfm2", "onnxruntime", "openvino"]
USUAL = PEERS[:6]


def run(command, threads):
    """Runs a process; returns its standard output and peak RSS in MB."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0), errors.seek(0)
        if status != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: status {status}\n{errors.read()[-2000:]}")
        return out.read(), usage.ru_maxrss * 1024 / 1e6


def measure_peer(name, length, number_type, options):
    out, peak = run([sys.executable, str(ROOT / "bench/peers/peer.py"), "--peer", name, "--length", str(length),
                     "--type", number_type, "--mode", options.mode, "--threads", str(options.threads), "--repeats",
                     str(options.repeats)], options.threads)
    result = json.loads(out.strip().splitlines()[-1])
    return result["cpu_s"], result["wall_s"], peak


def measure_etc(residual, length, number_type, options):
    with tempfile.TemporaryDirectory() as folder:
        _, peak = run([str(ROOT / "build/cpu/etc"), "benchmark", "--config", str(ROOT / "bench/peers/base.json"),
                       "--lengths", str(length), "--residual", residual, "--compute", number_type, "--mode",
                       options.mode, "--tokens-per-global", "18", "--repeats", str(options.repeats), "--threads",
                       str(options.threads), "--output", folder], options.threads)
        with open(pathlib.Path(folder) / "benchmark.csv") as file:
            row = next(csv.DictReader(file))
    return float(row["cpu_seconds"]), float(row["seconds"]), peak


def programs(options):
    """(name, measuring function, longest input) of every program, in the order of a round."""
    result = []
    for number_type in options.types:
        for residual in ("off", "sum") if number_type == options.types[0] else ("off",):
            label = f"etc {number_type}" + (", scores" if residual == "sum" else "")
            result.append((label, lambda length, r=residual, t=number_type: measure_etc(r, length, t, options), None))
    for peer, number_type, longest in options.peers:
        result.append((f"{peer} {number_type}",
                       lambda length, p=peer, t=number_type: measure_peer(p, length, t, options), longest))
    return result


def peer_of(text):
    """`name[:type][@longest]` -> (name, type, longest)."""
    program, _, longest = text.partition("@")
    name, _, number_type = program.partition(":")
    if name not in PEERS or number_type not in ("", "fp32", "bf16", "int8") or (longest and not longest.isdigit()):
        raise argparse.ArgumentTypeError(f"expected name[:type][@longest], name one of {', '.join(PEERS)}, type fp32, "
                                         f"bf16 or int8; got {text}")
    return name, number_type or "fp32", int(longest) if longest else None


class Budget:
    """Time limit of the whole run. The expected time of a point is derived from earlier points of the same program."""

    def __init__(self, seconds):
        self.seconds, self.start, self.taken = seconds, time.monotonic(), {}

    def expected(self, name, length):
        known = [(abs(other - length), other) for program, other in self.taken if program == name]
        if not known:
            return 0.0
        nearest = min(known)[1]
        return self.taken[name, nearest] * max(1.0, length / nearest) ** 1.5

    def allows(self, name, length):
        elapsed = time.monotonic() - self.start
        return self.seconds is None or elapsed + self.expected(name, length) <= self.seconds

    def note(self, name, length, seconds):
        self.taken[name, length] = seconds


COLOURS = {name: number for number, name in enumerate(["etc", "bert", "flex", "modernbert", "lfm2", "openvino",
                                                       "onnxruntime", "longt5", "longformer", "bigbird"])}
TYPES = ["fp32", "bf16", "int8"]


def curve(name, points):
    """Curve of a program as in `etc fp32, scores`: its colour shows the program, its dash the number type, and hollow
    marks residual scores."""
    program, number_type = name.split(",")[0].split()
    label = f"{NAMES.get(program, program)}, {number_type}" + (", residual scores" if "scores" in name else "")
    return Curve(points, label, COLOURS[program], TYPES.index(number_type), program == "etc", hollow="scores" in name)


def pictures(folder, name):
    """Draws the pictures of FOLDER/NAME.json: CPU time and memory against the length."""
    result = Comparison(f"{name}.json", folder)
    threads, what = result.data["threads"], "a training step" if result.data["mode"] == "train" else "inference"
    of = f"{what}: encoders of base size, one text, {threads} thread{'s' if threads > 1 else ''}"
    for quantity, title, y, value in (("time", "CPU time", "CPU seconds", result.seconds),
                                      ("memory", "Memory", "peak resident memory, MB", result.megabytes)):
        curves = [curve(program, [(n, value(program, n)) for n in result.lengths if (program, n) in result.points])
                  for program in result.programs]
        draw(folder / f"{name}_{quantity}.svg", Panel(f"{title} of {of}", "tokens", y, curves, "xy", tuple(result.lengths)))


def write(results, left_out, options):
    """Writes JSON, CSV and pictures; returns the table. results: {(program, length): [(cpu, wall, peak), …]}"""
    options.output.mkdir(parents=True, exist_ok=True)
    lengths = sorted(options.lengths)
    with open(options.output / f"{options.name}.json", "w") as file:
        points = [json.dumps({"program": name, "length": length, "rounds": [
            dict(zip(("cpu_s", "wall_s", "peak_mb"), point)) for point in points]})
            for (name, length), points in sorted(results.items())]
        head = json.dumps({"command": " ".join(sys.argv), "mode": options.mode, "threads": options.threads,
                           "repeats": options.repeats, "machine": machine(), "left_out": sorted(left_out)}, indent=1)
        file.write(head.removesuffix("\n}") + ',\n "points": [\n  ' + ",\n  ".join(points) + "\n ]\n}\n")
    names = list(dict.fromkeys(name for name, _ in results))
    rows = [[name, length, f"{cpu:.6f}", f"{median([p[1] for p in results[name, length]]):.6f}", f"{peak:.1f}",
             len(results[name, length])]
            for name in names for length in lengths if (name, length) in results
            for cpu, peak in [(median([p[0] for p in results[name, length]]),
                               median([p[2] for p in results[name, length]]))]]
    with open(options.output / f"{options.name}.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [["program", "length", "cpu_s", "wall_s", "peak_mb", "rounds"], *rows])
    pictures(options.output, options.name)
    return "\n".join(comparison_table(f"{options.name}.json", options.output))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="512,1024,2048,4096")
    parser.add_argument("--peers", type=lambda text: [peer_of(peer) for peer in text.split(",") if peer],
                        default=",".join(USUAL), help="list of name[:type][@longest]; names: " + ", ".join(PEERS))
    parser.add_argument("--types", default="fp32", help="number types of etc: fp32, bf16, int8; separated by commas")
    parser.add_argument("--mode", choices=("infer", "train"), default="infer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3,
                        help="timed calls, after one call of full length; with 1, etc warms up with a short input, so "
                             "that beyond 2,048 tokens its time includes the page faults of memory used for the first time")
    parser.add_argument("--budget", type=float, help="time limit for the whole run in seconds")
    parser.add_argument("--name", default="comparison", help="prefix of the names of the output files")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("comparison"), help="results folder")
    options = parser.parse_args()
    options.lengths = [int(length) for length in options.lengths.split(",")]
    options.types = options.types.split(",")
    if not (ROOT / "build/cpu/etc").exists():
        sys.exit("build/cpu/etc is missing: run ./run build first")
    results, left_out, budget = {}, set(), Budget(options.budget)
    for round_number in range(options.rounds):
        for length in options.lengths:
            for name, measure, longest in programs(options):
                if (longest and length > longest) or f"{name}, {length} tokens: failed" in left_out:
                    continue
                if not budget.allows(name, length):
                    left_out.add(f"{name}, {length} tokens, round {round_number + 1}: no time")
                    continue
                start = time.monotonic()
                try:
                    point = measure(length)
                except (RuntimeError, ValueError) as error:
                    left_out.add(f"{name}, {length} tokens: failed")
                    print(f"{name}, {length} tokens: left out: {error}", file=sys.stderr)
                    continue
                budget.note(name, length, time.monotonic() - start)
                results.setdefault((name, length), []).append(point)
                print(f"round {round_number + 1}: {name}, {length} tokens: {point[0]:.3f} CPU s, {point[2]:.0f} MB",
                      file=sys.stderr, flush=True)
                write(results, left_out, options)  # so that results survive an interruption
    print(write(results, left_out, options))
    for line in sorted(left_out):
        print(f"left out: {line}")


if __name__ == "__main__":
    main()
