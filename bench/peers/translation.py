#!/usr/bin/env python3
"""Translation compared with CTranslate2 (`decode`), and training compared with PyTorch's nn.Transformer (`train`); base
size.

    bench/peers/translation.py decode --peer-python PYTHON [--types fp32,int8] [--rounds 5] [--threads 1] [--output DIR]
    bench/peers/translation.py train  --peer-python PYTHON [--rounds 5] [--threads 1] [--output DIR]

decode: the same random weights in both formats, 64 sentences of 10 to 40 words, beam 4, every translation has --length
tokens. Both programs search the same hypotheses; the script first compares the translations and reports how many
sentences agree. The CPU time is that of the translation alone. For etc it is the time of the process minus that of a
process that translates a single word (loading and packing); for CTranslate2 it is the time of the call after a call
with a single word.

train: forward, label-smoothed loss, backward and optimiser step, always on the same batch, without dropout. For etc the
script takes the CPU time of a process with 1 + --steps steps minus that of a process with one step; for PyTorch the CPU
time of the --steps steps after the first. Both are divided by --steps.

The programs alternate. PYTHON is an interpreter with ctranslate2 (decode) or torch (train), and numpy. Writes
DIR/translation_decode.json or DIR/translation_train.json. Needs build/cpu/etc (`./run build`).
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from machine import machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = pathlib.Path(__file__).resolve().parent


def cpu_seconds(command, threads, text=None):
    """Runs a process; returns its standard output and CPU time (user and system) in seconds."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors, \
            tempfile.TemporaryFile("w+") as source:
        source.write(text or "")
        source.seek(0)
        process = subprocess.Popen(list(map(str, command)), stdin=source, stdout=out, stderr=errors, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0), errors.seek(0)
        if status != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: status {status}\n{errors.read()[-2000:]}")
        return out.read(), usage.ru_utime + usage.ru_stime


def translate(folder, number_type, length, threads, text, n_best=False):
    command = [ROOT / "build/cpu/etc", "translate", "--model", folder / "etc", "--input", "-", "--beam", 4,
               "--min-len", length, "--max-len-b", length, "--compute", number_type, "--threads", threads]
    return cpu_seconds(command + (["--n-best-output", "-"] if n_best else ["--output", "-"]), threads, text)


def agreement(folder, options, text):
    """{type: counts of agreement}: number of sentences, of those with the same set of four hypotheses, of those whose
    best hypothesis of etc is among the peer's four, and the share of equal words."""
    found = {}
    length = options.length - 1
    for number_type in options.types.split(","):
        out, _ = translate(folder, number_type, length, options.threads, text, n_best=True)
        own = [[answer["text"] for answer in json.loads(line)["answers"]] for line in out.splitlines()]
        out, _ = cpu_seconds([options.peer_python, PEERS / "translation_peer.py", "translations", folder, number_type,
                              length, options.threads], options.threads)
        theirs = json.loads(out)
        found[number_type] = {
            "sentences": len(own),
            "same_four": sum(set(a) == set(b) for a, b in zip(own, theirs)),
            "best_among_four": sum(a[0] in b for a, b in zip(own, theirs)),
            "words_shared": sum(x == y for a, b in zip(own, theirs) for x, y in zip(a[0].split(), b[0].split()))
            / (len(own) * length)}
    return found


def decode(options):
    points, text_of_one = {}, "w5\n"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([options.peer_python, PEERS / "translation_peer.py", "models", folder], check=True)
        text = (folder / "source.txt").read_text()
        found = agreement(folder, options, text)
        print(f"agreement: {found}", file=sys.stderr, flush=True)
        for _ in range(options.rounds):
            for number_type in options.types.split(","):
                whole = translate(folder, number_type, options.length - 1, options.threads, text)[1]
                one = translate(folder, number_type, 1, options.threads, text_of_one)[1]
                points.setdefault(f"etc {number_type}", []).append(whole - one)
                out, _ = cpu_seconds([options.peer_python, PEERS / "translation_peer.py", "time", folder, number_type,
                                      options.length, options.threads], options.threads)
                points.setdefault(f"CTranslate2 {number_type}", []).append(float(out))
                print({program: round(values[-1], 3) for program, values in points.items()}, file=sys.stderr,
                      flush=True)
    return {"agreement": found}, points, [(f"etc {t}", f"CTranslate2 {t}") for t in options.types.split(",")]


def train(options):
    points = {"etc": [], "PyTorch": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([options.peer_python, PEERS / "translation_peer.py", "pairs", folder], check=True)
        program = ROOT / "build/cpu/etc"
        cpu_seconds([program, "prepare", "--task", "translation", "--split", "train", "--subword", "word", "--source",
                     folder / "source.txt", "--target", folder / "target.txt", "--vocab", folder / "vocab.words",
                     "--output", folder / "train.h5"], options.threads)

        def steps(count, runs=itertools.count()):
            return cpu_seconds(
                [program, "train", "--task", "translation", "--model-kind", "seq2seq", "--data", folder / "train.h5",
                 "--batch-size", 64, "--micro-batch-tokens", 1 << 20, "--steps", count, "--hidden-dropout-prob", 0,
                 "--attention-probs-dropout-prob", 0, "--inner-dropout-prob", 0, "--learning-rate", 1e-4,
                 "--vocab-size", 32000, "--threads", options.threads, "--output", folder / f"run{next(runs)}"], options.threads)[1]

        for _ in range(options.rounds):
            points["etc"].append((steps(1 + options.steps) - steps(1)) / options.steps)
            out, _ = cpu_seconds([options.peer_python, PEERS / "translation_peer.py", "train", folder, options.steps,
                                  options.threads], options.threads)
            points["PyTorch"].append(float(out))
            print({program: round(values[-1], 3) for program, values in points.items()}, file=sys.stderr, flush=True)
    return {"steps": options.steps}, points, [("etc", "PyTorch")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["decode", "train"])
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--types", default="fp32,int8")
    parser.add_argument("--length", type=int, default=32, help="number of decoding steps of every translation")
    parser.add_argument("--steps", type=int, default=4, help="number of timed training steps")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("bench/results"))
    options = parser.parse_args()
    if not (ROOT / "build/cpu/etc").exists():
        sys.exit("build/cpu/etc is missing: ./run build")
    said, points, pairs = (decode if options.what == "decode" else train)(options)
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / f"translation_{options.what}.json", "w") as file:
        command = (f"bench/peers/translation.py {options.what} --types {options.types} --length {options.length} "
                   f"--steps {options.steps} --rounds {options.rounds} --threads {options.threads}")
        json.dump({"command": command, "machine": machine(), "threads": options.threads, **said,
                   "cpu_seconds": points}, file, indent=1)
    for own, peer in pairs:
        ratio = statistics.median(a / b for a, b in zip(points[own], points[peer]))
        print(f"{own} {statistics.median(points[own]):.3f} s, {peer} {statistics.median(points[peer]):.3f} s, "
              f"median of the ratios {ratio:.3f}")


if __name__ == "__main__":
    main()
