"""The first layer of a trained dense encoder with Huang's method 4, computed by numpy from its checkpoint: the rows of
its relative table, and the attention probability by distance (analysis 6)."""
import json
import math
import struct

import h5py
import numpy


def tensors(path):
    """{name: array} of an fp32 safetensors file."""
    data = path.read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    body = memoryview(data)[8 + size:]
    return {name: numpy.frombuffer(body[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


class FirstLayer:
    def __init__(self, folder, heads):
        self.parts, self.heads = tensors(folder / "model.safetensors"), heads
        self.table = self.own("relative_table")  # [2k + 1, heads, D]
        self.clip = (len(self.table) - 1) // 2

    def own(self, name):
        return self.parts["bert/encoder/layer_0/attention/self/" + name]

    def row_norms(self):
        """Distance -> norm of its table row, averaged over heads."""
        norms = numpy.linalg.norm(self.table, axis=2).mean(axis=1)
        return {row - self.clip: float(norm) for row, norm in enumerate(norms)}

    def attention(self, data, most=64):
        """Distance -> mean probability over heads and over the tokens that have a neighbour at that distance, in the
        first `most` texts."""
        sums, counts = {}, {}
        with h5py.File(data) as file:
            offsets = file["examples/long_token_ids/offsets"][:most + 1]
            ids = file["examples/long_token_ids/values"][:offsets[-1]]
        for begin, end in zip(offsets, offsets[1:]):
            mean = self.probabilities(ids[begin:end]).mean(axis=0)
            for distance in range(1 - len(mean), len(mean)):
                diagonal = numpy.diagonal(mean, distance)
                sums[distance] = sums.get(distance, 0.0) + float(diagonal.sum())
                counts[distance] = counts.get(distance, 0) + len(diagonal)
        return {distance: sums[distance] / counts[distance] for distance in sums}

    def probabilities(self, ids):
        """softmax of (q·k + q·w + k·w) / sqrt(D).   [heads, n, n]"""
        embeddings = "bert/embeddings/"
        x = self.parts[embeddings + "word_embeddings"][ids] + self.parts[embeddings + "token_type_embeddings"][0]
        x = (x - x.mean(axis=1, keepdims=True)) / numpy.sqrt(x.var(axis=1, keepdims=True) + 1e-12)
        x = x * self.parts[embeddings + "LayerNorm/gamma"] + self.parts[embeddings + "LayerNorm/beta"]
        n = len(ids)
        q, k = (numpy.reshape(x @ self.own(side + "/kernel") + self.own(side + "/bias"), (n, self.heads, -1))
                for side in ("query", "key"))
        distance = numpy.arange(n)[None, :] - numpy.arange(n)[:, None]  # key - query
        w = self.table[numpy.clip(distance, -self.clip, self.clip) + self.clip]  # [n, n, heads, D]
        scores = numpy.einsum("ihd,jhd->hij", q, k) + numpy.einsum("ihd,ijhd->hij", q, w) + numpy.einsum("jhd,ijhd->hij", k, w)
        scores /= math.sqrt(q.shape[2])
        powers = numpy.exp(scores - scores.max(axis=2, keepdims=True))
        return powers / powers.sum(axis=2, keepdims=True)
