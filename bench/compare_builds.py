#!/usr/bin/env python3
"""Shows whether a change made kernels or the encoder slower: runs two builds alternately and compares line by line.

    bench/compare_builds.py OLD_BUILD NEW_BUILD [--rounds 5] [--output FILE.json] [--only attention,matmul,encoder]
                            [--lines TEXT]

OLD_BUILD and NEW_BUILD are build folders with `etc`, `bench_attention` and `bench_matmul` (`build/cpu` of two
checkouts). Each round runs both builds; the order alternates between rounds. Each line has two figures: the median of
the per-round ratios new/old, and the ratio of the minimum times, which depends less on the load of the machine. Times
are CPU times of one thread where the program reports them, otherwise wall times. The last lines list every case whose
two ratios are both above 1.02 or both below 0.98, and the size of `etc`. --lines measures only the attention lines that
contain TEXT. A round of everything takes six minutes; Ctrl-C stops and reports the rounds completed so far.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

from machine import machine
from tables import median


def attention(build, lines):
    """{line: seconds}"""
    text = run([build / "bench_attention", "--csv", "--cpu-time", "--repeats", "5", "--threads", "1", "--only", lines])
    return {line.split('"')[1]: float(line.split('",')[1].split(",")[0]) for line in text.splitlines()[1:] if '"' in line}


def matmul(build, _):
    """{block, line: seconds per unit of work}"""
    block, lines = "", {}
    for line in run([build / "bench_matmul", "--repeat", "5", "--threads", "1"]).splitlines():
        match = re.match(r"\s+(\S.*?)\s+([\d.]+) (GFLOP/s|GB/s)", line)
        if match:
            lines[f"{block}: {match[1]}"] = 1 / float(match[2])
        elif line.strip():
            block = line.strip()
    return lines


def encoder(build, _):
    """{mode, scores, length: CPU seconds} of the preset `small`."""
    lines = {}
    for mode in ("infer", "train"):
        text = run([build / "etc", "benchmark", "--preset", "small", "--lengths", "512,4096", "--residual", "off,sum",
                    "--threads", "1", "--mode", mode, "--repeats", "3"])
        rows = [line.split() for line in text.splitlines()]
        header = next(row for row in rows if row and row[0] == "residual")
        for row in rows:
            if row and row[0] in ("off", "sum"):
                # header.split() makes two words of "CPU s", which is one cell of a row; "CPU s" follows "seconds"
                at = header.index("seconds") + 1
                lines[f"{mode}, scores {row[0]}, L {row[2]}"] = float(row[at])
    return lines


MEASURED = {"attention": attention, "matmul": matmul, "encoder": encoder}


def run(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs=2, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(MEASURED))
    parser.add_argument("--lines", default="")
    parser.add_argument("--output")
    options = parser.parse_args()
    rounds = []  # of {(program, line): seconds} for both builds
    try:
        for number in range(options.rounds):
            order, measured = (0, 1) if number % 2 == 0 else (1, 0), [{}, {}]
            for name in options.only.split(","):
                for which in order:
                    for line, seconds in MEASURED[name](options.builds[which], options.lines).items():
                        measured[which][f"{name}: {line}"] = seconds
            rounds.append(measured)
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped: the rounds so far count", file=sys.stderr)
    if not rounds:
        sys.exit("compare_builds: no round was completed")
    lines = [line for line in rounds[0][1] if line in rounds[0][0]]
    only_one = set(rounds[0][0]) ^ set(rounds[0][1])
    # ratios per round, because a slow phase of the machine affects both builds of a round
    ratios = {line: median([new[line] / old[line] for old, new in rounds]) for line in lines}
    least = {line: min(new[line] for _, new in rounds) / min(old[line] for old, _ in rounds) for line in lines}
    print("median   least")
    for line in lines:
        print(f"{ratios[line]:6.3f}  {least[line]:6.3f}  {line}")
    values = list(ratios.values())
    print(f"{len(lines)} lines; median of the ratios {median(values):.3f}, least {min(values):.3f}, most {max(values):.3f}")
    for line in lines:
        if min(ratios[line], least[line]) > 1.02 or max(ratios[line], least[line]) < 0.98:
            print(f"beyond 2 %: {ratios[line]:.3f}  {least[line]:.3f}  {line}")
    if only_one:
        print(f"in one build only: {', '.join(sorted(only_one))}")
    sizes = [(build / "etc").stat().st_size for build in options.builds]
    print(f"size of etc: {sizes[0] / 1e6:.2f} MB, {sizes[1] / 1e6:.2f} MB, {sizes[1] / sizes[0]:.2f} times")
    if options.output:
        temporary = pathlib.Path(options.output + ".partial")
        temporary.write_text(json.dumps({"machine": machine(), "load": os.getloadavg()[0], "ratios": ratios, "least": least, "bytes": sizes,
                                         "rounds": rounds}, indent=1) + "\n")
        os.replace(temporary, options.output)


if __name__ == "__main__":
    main()
