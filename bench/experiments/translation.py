#!/usr/bin/env python3
"""Encoder-decoders at a size two cores can pay: which trains in depth, which translates better, what beam, length penalty and
averaging do.

    bench/experiments/translation.py depth|quality|beam|average --output FOLDER [--source TEXT --target TEXT
                                     --dev-source TEXT --dev-target TEXT] [--merges N] [--seeds N] [--threads N]

Without --source the pairs are generated (`etc sample --task translation`), and words are the pieces; with it, N merges are
learned. Runs lie in FOLDER/<experiment>, and the same command goes on where it was stopped. Results:
FOLDER/translation_<experiment>.csv.

  depth    18 and 18 layers of width 64, 300 updates of about 1,024 target pieces: Post-LN, Pre-LN, ADMIN, ADMIN with
           running means; bits per piece on dev beside those of the pieces' frequencies
  quality  3 and 3 layers of width 128, five epochs: Post-LN, ADMIN, ADMIN with running means; BLEU of dev, each against
           the first one by a paired bootstrap
  beam     the last model of `quality`: BLEU and length by beam and length penalty
  average  the same: the mean of the weights of its last 1, 3 and 5 epochs
"""
import argparse
import collections
import json
import math
import pathlib
import statistics

from program import Program, add_option, write_csv

MODELS = {
    "post_ln": ["--norm", "post_ln"],
    "pre_ln": ["--norm", "pre_ln"],
    "admin": ["--norm", "admin"],
    "admin_mean": ["--norm", "admin", "--use-residual-attention", "true", "--use-running-mean", "true"],
}
RECIPE = ["--optimizer", "radam", "--adam-beta-2", 0.98, "--adam-epsilon", 1e-8, "--schedule", "inverse_sqrt",
          "--start-learning-rate", 1e-7, "--weight-decay", 0, "--clip-norm", 0]


def sizes(layers, width, inner, dropout):
    return ["--num-hidden-layers", layers, "--num-decoder-layers", layers, "--hidden-size", width, "--intermediate-size",
            inner, "--num-attention-heads", 4, "--hidden-dropout-prob", dropout, "--attention-probs-dropout-prob", 0.1,
            "--inner-dropout-prob", 0.1]


class Data:
    """Texts, vocabulary and prepared files, made when they are not there."""

    def __init__(self, etc, options):
        folder = options.output / "data"
        folder.mkdir(parents=True, exist_ok=True)
        self.texts = {"train": (options.source, options.target), "dev": (options.dev_source, options.dev_target)}
        subword = ["--subword", "bpe"]
        self.vocabulary = folder / "vocab.bpe"
        if not options.source:
            sample = folder / "sample"
            if not sample.exists():
                etc("sample", "--task", "translation", "--records", options.records, "--output", sample)
            self.texts = {split: (sample / f"{split}.source", sample / f"{split}.target") for split in self.texts}
            self.vocabulary, subword = sample / "vocab.words", ["--subword", "word"]
        elif not self.vocabulary.exists():
            etc("prepare", "--task", "translation", "--learn-vocab", options.merges, "--source", options.source,
                "--target", options.target, "--output", self.vocabulary)
        self.files = {}
        for split, (source, target) in self.texts.items():
            self.files[split] = folder / f"{split}.h5"
            if not self.files[split].exists():
                etc("prepare", "--task", "translation", "--split", split, *subword, "--vocab", self.vocabulary, "--source",
                    source, "--target", target, "--output", self.files[split])

    def unigram_bits(self):
        """Entropy of dev's target words under their frequencies in train, one added to each count; words only."""
        def words(split):
            return [word for line in open(self.texts[split][1], encoding="utf-8")
                    for word in [*line.split(), "</s>"]]

        train, dev = collections.Counter(words("train")), words("dev")
        total = sum(train.values()) + len(train) + 1
        return statistics.mean(-math.log2((train[word] + 1) / total) for word in dev)


def evaluations(run):
    with open(run / "metrics.jsonl", encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["kind"] == "eval"]


def train(etc, data, run, options, *words):
    """A run that ended is left as it is; whether it diverged."""
    if (run / "done").exists():
        return (run / "done").read_text() == "diverged"
    done = etc.attempt("train", "--task", "translation", "--model-kind", "seq2seq", "--data", data.files["train"],
                       "--eval-data", data.files["dev"], "--vocab", data.vocabulary, "--threads", options.threads,
                       *RECIPE, *words, "--output", run)
    diverged = done.returncode != 0 and "is nan" in done.stderr + done.stdout
    if done.returncode != 0 and not diverged:
        raise SystemExit(done.stderr)
    (run / "done").write_text("diverged" if diverged else "trained")
    return diverged


def depth(etc, data, options):
    unigram, rows = data.unigram_bits(), []
    for name, model in MODELS.items():
        for seed in range(1, options.seeds + 1):
            run = options.output / "depth" / f"{name}_{seed}"
            diverged = train(etc, data, run, options, *model, *sizes(18, 64, 256, 0.1), "--learning-rate", 1e-3,
                             "--warmup-steps", 100, "--tokens-per-batch", 2048, "--steps", 300, "--eval-every", 100,
                             "--seed", seed)
            bits = [-line["log2_likelihood"] for line in evaluations(run)]
            rows.append([name, seed, *(f"{b:.3f}" for b in bits), *[""] * (3 - len(bits)), f"{unigram:.3f}",
                         "diverged" if diverged else ""])
            print(*rows[-1], flush=True)
    return ["model", "seed", "bits_100", "bits_200", "bits_300", "unigram_bits", "note"], rows


def quality_run(options, name, seed):
    return options.output / "quality" / f"{name}_{seed}"


def translated(etc, data, model, to, *words):
    if not to.exists():
        etc("translate", "--model", model, "--input", data.texts["dev"][0], "--output", to, *words)
    return to


def scored(etc, data, hypotheses, *words):
    return json.loads(etc("eval", "--task", "translation", "--predictions", hypotheses, "--gold", data.texts["dev"][1],
                          "--json", *words))


def quality(etc, data, options):
    rows = []
    for seed in range(1, options.seeds + 1):
        first = None
        for name in ("post_ln", "admin", "admin_mean"):
            run = quality_run(options, name, seed)
            train(etc, data, run, options, *MODELS[name], *sizes(3, 128, 512, 0.3), "--learning-rate", 2e-3,
                  "--warmup-steps", options.warmup, "--tokens-per-batch", options.tokens, "--epochs", options.epochs,
                  "--keep-last", 5, "--seed", seed)
            hypotheses = translated(etc, data, run / "last", run / "dev.translated")
            first = first or hypotheses
            score = scored(etc, data, hypotheses, *([] if first is hypotheses else ["--baseline", first]))
            rows.append([name, seed, f"{-evaluations(run)[-1]['log2_likelihood']:.3f}", f"{score['metrics']['bleu']:.2f}",
                         f"{score['brevity_penalty']:.3f}",
                         *(f"{score[key]:.3f}" if key in score else ""
                           for key in ("difference", "difference_low", "difference_high", "p_value"))])
            print(*rows[-1], score["signature"], flush=True)
    return ["model", "seed", "bits", "bleu", "brevity_penalty", "difference", "low", "high", "p_value"], rows


def beam(etc, data, options):
    run, rows = quality_run(options, "admin_mean", 1), []
    for width in (1, 2, 4, 8):
        for penalty in (0, 0.6, 1, 1.4):
            score = scored(etc, data, translated(etc, data, run / "last", run / f"dev.{width}.{penalty}", "--beam", width,
                                                 "--length-penalty", penalty))
            rows.append([width, penalty, f"{score['metrics']['bleu']:.2f}",
                         f"{score['system_length'] / score['reference_length']:.4f}", f"{score['brevity_penalty']:.3f}"])
            print(*rows[-1], flush=True)
    return ["beam", "length_penalty", "bleu", "length_ratio", "brevity_penalty"], rows


def average(etc, data, options):
    run, rows = quality_run(options, "admin_mean", 1), []
    kept = sorted((run / "kept").glob("step_*"))
    for count in (1, 3, 5):
        mean = run / f"mean_{count}"
        if not mean.exists():
            etc("convert", "--average", *kept[-count:], "--output", mean)
        score = scored(etc, data, translated(etc, data, mean, run / f"dev.mean_{count}"))
        bits = etc.metrics("eval", "--model", mean, "--data", data.files["dev"])["log2_likelihood"]
        rows.append([count, f"{-bits:.3f}", f"{score['metrics']['bleu']:.2f}"])
        print(*rows[-1], flush=True)
    return ["epochs", "bits", "bleu"], rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=["depth", "quality", "beam", "average"])
    parser.add_argument("--output", type=pathlib.Path, required=True)
    for name in ("--source", "--target", "--dev-source", "--dev-target"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--records", type=int, default=8000, help="generated pairs")
    parser.add_argument("--merges", type=int, default=8000)
    parser.add_argument("--epochs", type=int, default=5, help="of quality")
    parser.add_argument("--tokens", type=int, default=2048, help="of a batch of quality, source and target")
    parser.add_argument("--warmup", type=int, default=100, help="steps, of quality")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    add_option(parser)
    options = parser.parse_args()
    etc = Program(options.program)
    run = {"depth": depth, "quality": quality, "beam": beam, "average": average}[options.experiment]
    header, rows = run(etc, Data(etc, options), options)
    write_csv(options.output / f"translation_{options.experiment}.csv", header, rows)


if __name__ == "__main__":
    main()
