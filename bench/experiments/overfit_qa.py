#!/usr/bin/env python3
"""Whether GLUE and SQuAD can be learned by heart: a small dense encoder on 100 rows of each data set and on an article.

    bench/experiments/overfit_qa.py --data FOLDER --output FOLDER [--sets rte,cola,…,squad] [--threads 2]

FOLDER/glue and FOLDER/squad hold the original files, FOLDER/vocab a BERT vocabulary. Trains with build/cpu/etc on the
first rows of a training file and evaluates on the same rows; writes overfit_qa.csv into the output folder.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/cpu/etc"
ROWS = 100
SIZES = ["--model-kind", "dense", "--vocab-size", "30522", "--hidden-size", "128", "--num-hidden-layers", "4",
         "--num-attention-heads", "4", "--intermediate-size", "512", "--max-absolute-position-embeddings", "512",
         "--hidden-dropout-prob", "0", "--attention-probs-dropout-prob", "0"]

# data set: file below glue/, header lines, further settings of the preparation
GLUE = {
    "cola": ("CoLA/in_domain_train.tsv", 0, []),
    "mrpc": ("MRPC/msr_paraphrase_train.txt", 1, []),
    "rte": ("RTE/train.tsv", 1, []),
    "sts-b": ("STS-B/stsb-en-train.csv", 0, ["--layout", "csv"]),
}
ARTICLE = "squad_v1.1_train_notre_dame.json"


def etc(*arguments):
    """What the program prints."""
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, text=True, stdout=subprocess.PIPE).stdout


def metrics_of(text):
    return {name: float(value) for name, value in (line.split() for line in text.splitlines())}


def learned(task, prepare, evaluate, raw, vocab, training, folder, threads):
    """Metrics of a model on what it was trained on, and the seconds that training took."""
    common = ["--task", task, "--vocab", vocab, "--input", raw]
    etc("prepare", *common, "--split", "train", "--output", folder / "train.h5", *prepare)
    etc("prepare", *common, "--split", "dev", "--output", folder / "dev.h5", *prepare, *evaluate)
    section = ["--data-set", prepare[1]] if task == "glue" else []
    begin = time.monotonic()
    etc("train", "--task", task, "--data", folder / "train.h5", "--vocab", vocab, "--output", folder / "run",
        "--threads", threads, *SIZES, *training, *section)
    seconds = time.monotonic() - begin
    metrics = metrics_of(etc("eval", "--model", folder / "run/last", "--data", folder / "dev.h5", "--threads", threads))
    if "loss" not in metrics:  # evaluation data of SQuAD have no targets
        metrics["loss"] = metrics_of(etc("eval", "--model", folder / "run/last", "--data", folder / "train.h5",
                                         "--threads", threads))["loss"]
    return metrics, seconds


def glue_rows(source, header, folder):
    """The header and the first rows of a file, as a file of its own."""
    lines = source.read_bytes().split(b"\n")[:header + ROWS]
    raw = folder / source.name
    raw.write_bytes(b"\n".join(lines) + b"\n")
    return raw


def run_set(name, data, vocab, threads):
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        if name == "squad":
            windows = ["--seq-len", "256", "--stride", "128"]
            training = ["--epochs", "40", "--batch-size", "8", "--learning-rate", "0.001"]
            return learned("squad", windows, ["--is-training", "false"], data / "squad" / ARTICLE, vocab, training, folder,
                           threads)
        file, header, more = GLUE[name]
        training = ["--epochs", "100", "--batch-size", "10", "--learning-rate", "0.001", "--norm", "pre_ln"]
        return learned("glue", ["--data-set", name, *more], [], glue_rows(data / "glue" / file, header, folder), vocab,
                       training, folder, threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="a folder with glue, squad and vocab")
    parser.add_argument("--output", required=True, type=pathlib.Path, help="a folder")
    parser.add_argument("--sets", default=",".join([*GLUE, "squad"]))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if not PROGRAM.exists():
        sys.exit(f"{PROGRAM.relative_to(ROOT)} is missing: ./run build")
    vocab = options.data / "vocab/bert_uncased_vocab.txt"
    rows = ["data_set,loss,seconds,metrics"]
    for name in options.sets.split(","):
        metrics, seconds = run_set(name, options.data, vocab, options.threads)
        shown = " ".join(f"{key}={value:g}" for key, value in metrics.items() if key != "loss")
        rows.append(f"{name},{metrics['loss']:g},{seconds:.0f},{shown}")
        print(rows[-1], flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    temporary = options.output / "overfit_qa.csv.tmp"
    temporary.write_text("\n".join(rows) + "\n")
    os.replace(temporary, options.output / "overfit_qa.csv")


if __name__ == "__main__":
    main()
