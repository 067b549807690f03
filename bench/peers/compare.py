#!/usr/bin/env python3
"""Time and memory of `etc` beside encoders people use today, in one interleaved run.

    python3 -m venv VENV && VENV/bin/pip install torch transformers
    VENV/bin/python bench/peers/compare.py --lengths 512,1024,2048,4096 --rounds 3 --output comparison

Every point runs in a process of its own; all programs take their turn at a point before the next one, and all points
are done once before the second round. Quoted is the median over the rounds of processor seconds per call (wall seconds
depend on the neighbours), and the largest resident size of the process. Needs build/cpu/etc. What is compared: a batch
of one, base size (peer.py), random weights. ETC's global tokens come on top of the long ones, 230 per 4,096.
"""
import argparse
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ["bert", "flex", "modernbert", "longt5", "longformer", "bigbird"]


def run(command, threads):
    """Runs a process; returns its standard output and largest resident size in MB."""
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
    """Names with their measuring functions, in the order they take turns."""
    result = []
    for number_type in options.types:
        for residual in ("off", "sum"):
            label = f"etc {number_type}" + (", scores" if residual == "sum" else "")
            result.append((label, lambda length, r=residual, t=number_type: measure_etc(r, length, t, options)))
        if number_type == "int8":
            continue
        for peer in options.peers:
            result.append((f"{peer} {number_type}",
                           lambda length, p=peer, t=number_type: measure_peer(p, length, t, options)))
    return result


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def write(results, options):
    """results: {(program, length): [(cpu, wall, peak), …]}"""
    options.output.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for name, _ in results))
    with open(options.output / "comparison.json", "w") as file:
        json.dump({"mode": options.mode, "threads": options.threads, "machine": machine(),
                   "points": [{"program": name, "length": length, "rounds": [
                       dict(zip(("cpu_s", "wall_s", "peak_mb"), point)) for point in points]}
                       for (name, length), points in results.items()]}, file, indent=1)
    lines = ["| program | " + " | ".join(map(str, options.lengths)) + " |", "|---" * (len(options.lengths) + 1) + "|"]
    rows = []
    for name in names:
        cells = []
        for length in options.lengths:
            points = results.get((name, length))
            if not points:
                cells.append("–")
                continue
            cpu, peak = median([p[0] for p in points]), median([p[2] for p in points])
            cells.append(f"{cpu:.2f} s, {peak:.0f} MB")
            rows.append([name, length, f"{cpu:.6f}", f"{median([p[1] for p in points]):.6f}", f"{peak:.1f}"])
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    (options.output / "comparison.md").write_text("\n".join(lines) + "\n")
    with open(options.output / "comparison.csv", "w", newline="") as file:
        csv.writer(file).writerows([["program", "length", "cpu_s", "wall_s", "peak_mb"], *rows])
    if shutil.which("gnuplot"):
        plots = [f"'< grep \"^\\\"*{name}\\\"*,\" comparison.csv' using 2:3 with linespoints title '{name}'"
                 for name in names]
        script = ("set datafile separator ','\nset terminal svg size 900,600\nset output 'comparison.svg'\n"
                  "set logscale xy 2\nset xlabel 'tokens'\nset ylabel 'processor seconds per call'\nset key outside\n"
                  "plot " + ", ".join(plots) + "\n")
        subprocess.run(["gnuplot"], input=script, text=True, cwd=options.output, check=False)
    return "\n".join(lines)


def machine():
    with open("/proc/cpuinfo") as file:
        lines = file.read().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    flags = next((line for line in lines if line.startswith("flags")), "")
    return {"model": model, "avx512": " avx512f" in flags, "amx_bf16": " amx_bf16" in flags}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="512,1024,2048,4096")
    parser.add_argument("--peers", default=",".join(PEERS), help="of " + ", ".join(PEERS))
    parser.add_argument("--types", default="fp32", help="fp32, bf16, int8; separated by commas")
    parser.add_argument("--mode", choices=("infer", "train"), default="infer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("comparison"))
    options = parser.parse_args()
    options.lengths = [int(length) for length in options.lengths.split(",")]
    options.peers = [peer for peer in options.peers.split(",") if peer]
    options.types = options.types.split(",")
    if not (ROOT / "build/cpu/etc").exists():
        sys.exit("build/cpu/etc is missing: run ./run build first")
    results, failed = {}, set()
    for round_number in range(options.rounds):
        for length in options.lengths:
            for name, measure in programs(options):
                if (name, length) in failed:
                    continue
                try:
                    point = measure(length)
                except (RuntimeError, ValueError) as error:
                    failed.add((name, length))
                    print(f"{name}, {length} tokens: left out: {error}", file=sys.stderr)
                    continue
                results.setdefault((name, length), []).append(point)
                print(f"round {round_number + 1}: {name}, {length} tokens: {point[0]:.3f} CPU s, {point[2]:.0f} MB",
                      file=sys.stderr, flush=True)
                write(results, options)  # what is there survives an interruption
    print(write(results, options))


if __name__ == "__main__":
    main()
