#!/usr/bin/env python3
"""A dense base encoder compared with BERT of `transformers` (scaled_dot_product_attention), in typical use: eight texts
of unequal lengths, which etc concatenates without padding and the library pads to the longest.

    bench/peers/dense.py [--lengths 128,512] [--modes infer,train] [--rounds 2] [--repeats 1] [--threads 1]
                         [--output DIR]

Random weights of base size, fp32, no dropout, no head. A training step is forward, backward of the mean square of the
states, and AdamW. Every measurement runs in its own process; the programs alternate. Writes DIR/dense.json; the
comparison is by CPU time. Needs build/cpu/bench_dense (`./run build cpu bench_dense`), torch and transformers.
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from compare import run  # noqa: E402
from machine import machine  # noqa: E402
from peer import report  # noqa: E402
from tables import dense_table  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)  # length of each text, relative to the longest
PROGRAMS = ("etc", "etc, scores", "bert")


def text_lengths(longest):
    return [round(longest * share) for share in SHARES]


def call_bert(longest, mode, threads, repeats):
    """Measures calls of the library on the padded texts with their padding mask; prints the medians as JSON."""
    import torch
    from transformers import BertConfig, BertModel

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    config = BertConfig(max_position_embeddings=512, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    config._attn_implementation = "sdpa"
    model = BertModel(config, add_pooling_layer=False)
    training = mode == "train"
    model.train(training)
    lengths = text_lengths(longest)
    ids = torch.randint(5, config.vocab_size, (len(lengths), longest))
    mask = torch.tensor([[int(i < length) for i in range(longest)] for length in lengths])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)

    def call():
        with torch.set_grad_enabled(training):
            states = model(input_ids=ids, attention_mask=mask).last_hidden_state
        if training:
            states[mask.bool()].square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    report(call, repeats)


def measure(program, longest, mode, options):
    shared = ["--mode", mode, "--threads", str(options.threads), "--repeats", str(options.repeats)]
    if program == "bert":
        command = [sys.executable, __file__, "--bert", str(longest), *shared]
    else:
        command = [str(ROOT / "build/cpu/bench_dense"), "--lengths", ",".join(map(str, text_lengths(longest))),
                   "--residual", "sum" if "scores" in program else "off", *shared]
    out, peak = run(command, options.threads)
    return dict(json.loads(out.strip().splitlines()[-1]), peak_mb=peak)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default="128,512", help="tokens of the longest text, separated by commas")
    parser.add_argument("--modes", default="infer,train")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("bench/results"))
    parser.add_argument("--bert", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bert:
        return call_bert(options.bert, options.mode, options.threads, options.repeats)
    if not (ROOT / "build/cpu/bench_dense").exists():
        sys.exit("build/cpu/bench_dense is missing: ./run build cpu bench_dense")
    import torch
    import transformers

    points = {}
    for round_number in range(options.rounds):
        for mode in options.modes.split(","):
            for longest in map(int, options.lengths.split(",")):
                for program in PROGRAMS:
                    try:
                        point = measure(program, longest, mode, options)
                    except subprocess.SubprocessError as error:
                        sys.exit(f"{program}, {longest} tokens: {error}")
                    points.setdefault((program, mode, longest), []).append(point)
                    print(f"round {round_number + 1}: {program}, {mode}, {longest}: {point['cpu_s']:.3f} CPU s, "
                          f"{point['peak_mb']:.0f} MB", file=sys.stderr, flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / "dense.json", "w") as file:
        json.dump({"command": " ".join(sys.argv), "machine": machine(), "threads": options.threads,
                   "torch": torch.__version__, "transformers": transformers.__version__, "points": [
                       {"program": program, "mode": mode, "length": longest, "rounds": rounds}
                       for (program, mode, longest), rounds in points.items()]}, file, indent=1)
    print("\n".join(dense_table("dense.json", options.output)))


if __name__ == "__main__":
    main()
