#!/usr/bin/env python3
"""SQuAD with contexts of 4,096 tokens on an ETC: part of an article in one window, and the whole article in several.

    bench/experiments/long_squad.py --data DATA --output FOLDER [--questions 4] [--steps 80] [--threads 2]

DATA/squad/squad_v1.1_train_notre_dame.json is one article of 55 paragraphs. As many of its first paragraphs as fit into
4,096 tokens are joined to one text, and a few of their questions are kept. An ETC (4 layers, width 128, radius 84,
pre-LN, random initial weights) is trained until it has memorised the answers. Then it answers the same questions on the
whole article (five windows of 4,096 tokens) without further training. Writes long_squad.csv.
"""
import argparse
import json
import pathlib

from program import Program, add_option, write_csv

ARTICLE = "squad_v1.1_train_notre_dame.json"
TOKENS = 4096
SIZES = ["--vocab-size", 30522, "--hidden-size", 128, "--num-hidden-layers", 4, "--num-attention-heads", 4,
         "--intermediate-size", 512, "--local-radius", 84, "--use-pre-activation-order", "true", "--hidden-dropout-prob", 0,
         "--attention-probs-dropout-prob", 0]


def joined(paragraphs, kept):
    """Joins all paragraphs to one text; keeps only the questions whose ids are in `kept`."""
    context, questions = "", []
    for paragraph in paragraphs:
        for question in paragraph["qas"]:
            if question["id"] in kept:
                answers = [{**a, "answer_start": a["answer_start"] + len(context)} for a in question["answers"]]
                questions.append({**question, "answers": answers})
        context += paragraph["context"] + "\n"
    return {"data": [{"title": "joined", "paragraphs": [{"context": context, "qas": questions}]}]}


class Experiment:
    def __init__(self, options):
        self.etc, self.options = Program(options.program), options
        self.vocab = options.data / "vocab/bert_uncased_vocab.txt"
        self.rows = []

    def prepared(self, name, text, *words):
        raw, output = self.options.output / f"{name}.json", self.options.output / f"{name}.h5"
        raw.write_text(json.dumps(text), encoding="utf-8")
        printed = self.etc("prepare", "--task", "squad", "--split", "train", "--input", raw, "--vocab", self.vocab,
                           "--output", output, "--seq-len", TOKENS, "--stride", TOKENS // 2, *words)
        return raw, output, int(next(line for line in printed.splitlines() if line.startswith("examples:")).split()[1])

    def fitting(self, paragraphs):
        """The largest number of first paragraphs that fit into one window."""
        count = len(paragraphs)
        while self.prepared("probe", joined(paragraphs[:count], {paragraphs[0]["qas"][0]["id"]}))[2] > 1:
            count -= 1
        return count

    def evaluate(self, label, raw, data, windows):
        """Runs `etc predict` and scores the predictions by the official rules."""
        predictions = self.options.output / "predictions.json"
        self.etc("predict", "--model", self.options.output / "run/last", "--data", data, "--output", predictions,
                 "--threads", self.options.threads)
        found = self.etc.metrics("eval", "--task", "squad", "--predictions", predictions, "--gold", raw)
        self.rows.append([label, windows, f"{found['exact_match']:.1f}", f"{found['f1']:.1f}"])
        print(*self.rows[-1], flush=True)

    def run(self):
        options = self.options
        options.output.mkdir(parents=True, exist_ok=True)
        whole = json.loads((options.data / "squad" / ARTICLE).read_text(encoding="utf-8"))["data"][0]["paragraphs"]
        first = whole[:self.fitting(whole)]
        ids = [question["id"] for paragraph in first for question in paragraph["qas"]]
        kept = set(ids[len(ids) // (2 * options.questions)::len(ids) // options.questions][:options.questions])
        raw, train, windows = self.prepared("train", joined(first, kept))
        dev = self.prepared("dev", joined(first, kept), "--is-training", "false")[1]
        self.etc("train", "--task", "squad", *SIZES, "--data", train, "--vocab", self.vocab, "--output", options.output / "run",
                 "--batch-size", 2, "--steps", options.steps, "--learning-rate", "1e-3", "--threads", options.threads)
        self.evaluate(f"{len(first)} paragraphs, {options.questions} questions", raw, dev, windows)
        raw, dev, windows = self.prepared("article", joined(whole, kept), "--is-training", "false")
        self.evaluate(f"the whole article, {len(whole)} paragraphs, the same questions", raw, dev, windows)
        write_csv(options.output / "long_squad.csv", ["text", "windows of all questions", "exact match", "F1"], self.rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder with squad/ and vocab/")
    parser.add_argument("--output", required=True, type=pathlib.Path, help="folder for the results")
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--threads", type=int, default=2)
    add_option(parser)
    Experiment(parser.parse_args()).run()


if __name__ == "__main__":
    main()
