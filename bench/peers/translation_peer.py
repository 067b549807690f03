"""Runs the peers of translation.py; needs an interpreter in which they are installed.

    models FOLDER                             writes random weights (FOLDER/etc, FOLDER/peer) and FOLDER/source.txt
    pairs FOLDER                              writes sentence pairs and their vocabulary, for training
    translations FOLDER TYPE LENGTH THREADS   prints four translations of each sentence as JSON
    time FOLDER TYPE LENGTH THREADS           prints the CPU time of translating all sentences
    train FOLDER STEPS THREADS                prints the CPU time of a training step
"""
import hashlib
import json
import math
import pathlib
import struct
import sys
import time

import numpy as np

LAYERS, HIDDEN, INNER, HEADS, VOCABULARY = 6, 512, 2048, 8, 32000
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
WORDS = [f"w{i}" for i in range(VOCABULARY - len(SPECIALS))]


def sentences(seed, count=64, shortest=10, longest=40):
    random = np.random.default_rng(seed)
    return [" ".join(WORDS[i] for i in random.integers(0, len(WORDS), random.integers(shortest, longest + 1)))
            for _ in range(count)]


def write_vocabulary(path):
    text = "#dictionary words=blanks case=mixed\n" + "".join(f"{word} 1\n" for word in WORDS)
    path.write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


def sinusoids(count):
    half = HIDDEN // 2
    rates = np.exp(np.arange(half) * -(math.log(10000) / (half - 1)))
    angles = (np.arange(count)[:, None] + 2) * rates[None, :]  # the first token has position 2
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def random_weights():
    """{name: tensor} with the names of etc's checkpoints; kernels are [in, out]."""
    random = np.random.default_rng(1)
    tensors = {"seq2seq/embeddings/tokens": random.normal(0, HIDDEN**-0.5, (VOCABULARY, HIDDEN))}

    # Queries, keys and cross-attention have larger weights, so that translations depend on the source.
    def dense(name, rows, cols, bound):
        bound *= 3 if "cross_attention" in name or name.endswith(("query", "key")) else 1
        tensors[name + "/kernel"] = random.uniform(-bound, bound, (rows, cols))
        tensors[name + "/bias"] = random.normal(0, 0.02, cols)

    for stack, sublayers in (("encoder", ["self_attention"]), ("decoder", ["self_attention", "cross_attention"])):
        for i in range(LAYERS):
            layer = f"seq2seq/{stack}/layer_{i}/"
            for sublayer in sublayers:
                for part in ("query", "key", "value", "output"):
                    dense(f"{layer}{sublayer}/{part}", HIDDEN, HIDDEN, math.sqrt(6 / (2 * HIDDEN)))
            dense(layer + "feed_forward/inner", HIDDEN, INNER, math.sqrt(6 / (HIDDEN + INNER)))
            dense(layer + "feed_forward/outer", INNER, HIDDEN, math.sqrt(6 / (HIDDEN + INNER)))
            for sublayer in sublayers + ["feed_forward"]:
                tensors[f"{layer}{sublayer}/LayerNorm/gamma"] = random.normal(1, 0.05, HIDDEN)
                tensors[f"{layer}{sublayer}/LayerNorm/beta"] = random.normal(0, 0.05, HIDDEN)
    return {name: values.astype(np.float32) for name, values in tensors.items()}


def write_etc(folder, tensors):
    folder.mkdir()
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(values.tobytes())
    sha256 = write_vocabulary(folder / "vocab.words")
    model = {"kind": "seq2seq", "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
             "num_decoder_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": INNER,
             "norm": "post_ln", "use_residual_attention": False}
    config = {"model": model, "task": {"name": "translation"},
              "data": {"vocab_sha256": sha256, "preprocess_config": {}, "vocab_file": "vocab.words"}}
    (folder / "config.json").write_text(json.dumps(config))


def write_peer(folder, tensors):
    from ctranslate2.specs import TransformerSpec

    spec = TransformerSpec.from_config((LAYERS, LAYERS), HEADS, pre_norm=False)

    def dense(to, *names):
        to.weight = np.ascontiguousarray(np.concatenate([tensors[n + "/kernel"].T for n in names]))
        to.bias = np.concatenate([tensors[n + "/bias"] for n in names])

    def norm(to, name):
        to.gamma, to.beta = tensors[name + "/LayerNorm/gamma"], tensors[name + "/LayerNorm/beta"]

    for stack, to in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = to.embeddings[0] if isinstance(to.embeddings, list) else to.embeddings
        embeddings.weight = tensors["seq2seq/embeddings/tokens"]
        to.position_encodings.encodings = sinusoids(512)
        for i, layer in enumerate(to.layer):
            at = f"seq2seq/{stack}/layer_{i}/"
            own = at + "self_attention/"
            dense(layer.self_attention.linear[0], own + "query", own + "key", own + "value")
            dense(layer.self_attention.linear[1], own + "output")
            norm(layer.self_attention.layer_norm, at + "self_attention")
            if stack == "decoder":
                across = at + "cross_attention/"
                dense(layer.attention.linear[0], across + "query")
                dense(layer.attention.linear[1], across + "key", across + "value")
                dense(layer.attention.linear[2], across + "output")
                norm(layer.attention.layer_norm, at + "cross_attention")
            dense(layer.ffn.linear_0, at + "feed_forward/inner")
            dense(layer.ffn.linear_1, at + "feed_forward/outer")
            norm(layer.ffn.layer_norm, at + "feed_forward")
    spec.decoder.projection.weight = tensors["seq2seq/embeddings/tokens"]
    spec.config.add_source_eos = True
    spec.config.decoder_start_token = "</s>"
    spec.config.layer_norm_epsilon = 1e-5
    spec.register_source_vocabulary(SPECIALS + WORDS)
    spec.register_target_vocabulary(SPECIALS + WORDS)
    spec.validate()
    spec.optimize(quantization=None)
    folder.mkdir()
    spec.save(str(folder))


def translations(folder, number_type, length, threads):
    """Returns a function that maps a list of sentences to four translations of each."""
    import ctranslate2

    kind = {"fp32": "float32", "int8": "int8", "bf16": "bfloat16"}[number_type]
    translator = ctranslate2.Translator(str(folder / "peer"), device="cpu", compute_type=kind, inter_threads=1,
                                        intra_threads=int(threads))

    def call(lines, steps=int(length)):
        results = translator.translate_batch([line.split() for line in lines], beam_size=4, num_hypotheses=4,
                                             min_decoding_length=steps, max_decoding_length=steps, length_penalty=0.6,
                                             max_batch_size=0)
        return [[" ".join(words) for words in result.hypotheses] for result in results]

    return call


def train(folder, steps, threads):
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    ids = {word: i for i, word in enumerate(SPECIALS + WORDS)}

    def batch(name):
        lines = [[ids[word] for word in line.split()] + [2] for line in (folder / name).read_text().splitlines()]
        longest = max(map(len, lines))
        return torch.tensor([line + [1] * (longest - len(line)) for line in lines])

    source, target = batch("source.txt"), batch("target.txt")
    shifted = torch.cat([torch.full((len(target), 1), 2), target[:, :-1]], 1)
    table = nn.Embedding(VOCABULARY, HIDDEN, padding_idx=1)
    nn.init.normal_(table.weight, 0, HIDDEN**-0.5)
    model = nn.Transformer(HIDDEN, HEADS, LAYERS, LAYERS, INNER, dropout=0.0, batch_first=True)
    positions = torch.from_numpy(sinusoids(512))
    parameters = [*table.parameters(), *model.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1]).isinf()

    def embedded(tokens):
        return table(tokens) * math.sqrt(HIDDEN) + positions[:tokens.shape[1]]

    def step():
        states = model(embedded(source), embedded(shifted), tgt_mask=causal, src_key_padding_mask=source == 1,
                       tgt_key_padding_mask=shifted == 1, memory_key_padding_mask=source == 1, tgt_is_causal=True)
        kept = target != 1  # compute no logits for padding
        loss = nn.functional.cross_entropy(states[kept] @ table.weight.T, target[kept], label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    begin = time.process_time()
    for _ in range(steps):
        step()
    return (time.process_time() - begin) / steps


def main():
    what, folder, *rest = sys.argv[1:]
    folder = pathlib.Path(folder)
    if what == "models":
        tensors = random_weights()
        write_etc(folder / "etc", tensors)
        write_peer(folder / "peer", tensors)
        (folder / "source.txt").write_text("".join(line + "\n" for line in sentences(2)))
    elif what == "pairs":
        write_vocabulary(folder / "vocab.words")
        for name, seed in (("source.txt", 2), ("target.txt", 3)):
            (folder / name).write_text("".join(line + "\n" for line in sentences(seed)))
    elif what == "translations":
        print(json.dumps(translations(folder, *rest)((folder / "source.txt").read_text().splitlines())))
    elif what == "time":
        call = translations(folder, *rest)
        call(["w5"], 1)
        lines = (folder / "source.txt").read_text().splitlines()
        begin = time.process_time()
        call(lines)
        print(time.process_time() - begin)
    else:
        print(train(folder, *map(int, rest)))


if __name__ == "__main__":
    main()
