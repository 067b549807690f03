#!/usr/bin/env python3
"""Loss of accuracy by 16-bit residual scores (`--scores fp16`), on the generated records of every task.

    bench/experiments/score_types.py --output FOLDER [--tasks wikihop,hotpotqa,…] [--threads 2]

Trains the small configuration of each task with summed residual scores, then evaluates, predicts and encodes with
32-bit and with 16-bit scores. Writes score_types.csv: the task's main metric and the loss with each type, the number of
predictions that differ, and the largest difference between the states of dev texts, relative to the largest state.
"""
import argparse
import array
import json
import pathlib
import re
import tempfile

from program import ROOT, Program, add_option, write_csv

MODEL = ["--use-residual-attention", "true", "--use-running-mean", "false"]
# task: (main metric, records, file extension, vocabulary, arguments of both preparations, of the dev preparation only,
#        of training)
TASKS = {
    "wikihop": ("accuracy", 16000, "json", "vocab.txt", [], [], []),
    "hotpotqa": ("joint_f1", 16000, "json", "vocab.txt", [], ["--is-training", "false"], []),
    "nq": ("f1", 16000, "jsonl", "vocab.txt", [], ["--is-train", "false"], []),
    "openkp": ("F1@3", 8000, "jsonl", "vocab.txt", [], [], []),
    "squad": ("f1", 16000, "json", "vocab.txt", [], ["--is-training", "false"], []),
    "glue": ("accuracy", 16000, "tsv", "vocab.txt", ["--data-set", "sst-2"], [], []),
    "pretrain": ("masked_lm_accuracy", 300, "txt", "vocab.txt", ["--objective", "mlm_cpc"], [], []),
    "lm": ("bits_per_character", 1000, "txt", "vocab.chars", ["--text-ends", "lines", "--segment-length", "16"], [], []),
}
CONFIGS = {"pretrain": "pretrain_etc_tiny"}


def states(program, model, texts, folder, scores, threads):
    """The states of all tokens of the texts as one array of floats, read from the .npy file that `etc encode`
    writes."""
    path = folder / f"states_{scores}.npy"
    path.unlink(missing_ok=True)
    program("encode", "--model", model, "--text", texts, "--states", "long", "--scores", scores, "--threads", threads,
            "--output", path)
    data = path.read_bytes()
    numbers = array.array("f")
    numbers.frombytes(data[10 + int.from_bytes(data[8:10], "little"):])
    return numbers


def without_scores(value):
    """Removes floating-point numbers (confidences), so that only the answers are compared."""
    if isinstance(value, dict):
        return {key: without_scores(part) for key, part in value.items() if not isinstance(part, float)}
    return [without_scores(part) for part in value if not isinstance(part, float)] if isinstance(value, list) else value


def predictions(path):
    """{id: prediction} of a prediction file in any task's format."""
    text = path.read_text(encoding="utf-8")
    try:
        read = json.loads(text)
    except json.JSONDecodeError:
        lines = text.splitlines()
        if lines and lines[0].startswith("index\t"):  # the header of GLUE's files
            del lines[0]
        return dict(enumerate(re.sub(r"-?\d+\.\d+(e-?\d+)?", "", line) for line in lines))
    while isinstance(read, dict) and len(read) == 1:
        read = next(iter(read.values()))
    read = without_scores(read)
    if isinstance(read, dict) and all(isinstance(part, dict) for part in read.values()):
        read = {(name, key): value for name, part in read.items() for key, value in part.items()}
    return read if isinstance(read, dict) else dict(enumerate(read))


def try_task(program, task, folder, threads):
    metric, records, ending, vocabulary, both, for_dev, training = TASKS[task]
    sample = folder / "sample"
    program("sample", "--task", task, "--records", records, "--output", sample)
    for split in ("train", "dev"):
        program("prepare", "--task", task, "--split", split, "--input", sample / f"{split}.{ending}", "--vocab",
                sample / vocabulary, *both, *(for_dev if split == "dev" else []), "--output", folder / f"{split}.h5")
    config = ROOT / "tasks/configs" / f"{CONFIGS.get(task, task + '_tiny')}.json"
    program("train", "--config", config, *MODEL, *training, "--data", folder / "train.h5", "--vocab", sample / vocabulary,
            "--threads", threads, "--output", folder / "run")
    model, data = folder / "run", folder / "dev.h5"
    measured, predicted = {}, {}
    for scores in ("int32", "fp16"):
        words = ["--model", model, "--data", data, "--scores", scores, "--threads", threads]
        measured[scores] = json.loads(program("eval", *words, "--json"))["metrics"]
        path = folder / f"predictions_{scores}"
        done = program.attempt("predict", *words, "--output", path)
        predicted[scores] = predictions(path) if done.returncode == 0 else {}
    exact, half = predicted["int32"], predicted["fp16"]
    differ = sum(exact[key] != half.get(key) for key in exact)
    texts = folder / "texts.jsonl"
    lines = [line for line in (sample / f"dev.{ending}").read_text(encoding="utf-8").splitlines() if line.strip()]
    texts.write_text("".join(json.dumps(line[:1500]) + "\n" for line in lines[:20]), encoding="utf-8")
    off = ""
    if task != "lm":  # the lm model reads text in segments, not as a whole
        a, b = (states(program, model, texts, folder, scores, threads) for scores in ("int32", "fp16"))
        off = f"{max(abs(x - y) for x, y in zip(a, b)) / max(abs(x) for x in a):.1e}"
    if metric not in measured["int32"]:
        raise SystemExit(f"{task}: no metric {metric} among {', '.join(measured['int32'])}")
    return [task, metric, *(f"{measured[scores][metric]:.4f}" for scores in ("int32", "fp16")),
            *(f"{measured[scores]['loss']:.6f}" if "loss" in measured[scores] else "" for scores in ("int32", "fp16")),
            differ, len(exact), off]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--threads", type=int, default=2)
    add_option(parser)
    options = parser.parse_args()
    rows = []
    for task in options.tasks.split(","):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(try_task(Program(options.program), task, pathlib.Path(folder), options.threads))
        print(*rows[-1], flush=True)
    write_csv(options.output / "score_types.csv",
              ["task", "metric", "int32", "fp16", "loss, int32", "loss, fp16", "predictions that differ", "of",
               "largest difference of states"], rows)


if __name__ == "__main__":
    main()
