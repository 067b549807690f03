"""Writes examples to an HDF5 file as arrays padded to their full lengths, as the published preparations do."""
from dataclasses import dataclass

import h5py
import numpy


@dataclass(frozen=True)
class Feature:
    length: int = 0  # length of the padded list; 0: a single number
    pad: int = 0
    type: type = numpy.int32


class Writer:
    """Appends examples, {feature: numbers}. Arrays are [examples, length] in chunks of EXAMPLES rows, with the HDF5
    filters of `etc prepare`."""

    EXAMPLES = 32

    def __init__(self, path, features):
        self.file = h5py.File(path, "w")
        self.features = features
        self.rows = 0  # rows in the buffers
        self.arrays, self.buffers = {}, {}
        for name, feature in features.items():
            shape = (feature.length,) if feature.length else ()
            self.buffers[name] = numpy.full((self.EXAMPLES, *shape), feature.pad, feature.type)
            self.arrays[name] = self.file.create_dataset(
                name, (0, *shape), feature.type, maxshape=(None, *shape), chunks=(self.EXAMPLES, *shape),
                shuffle=True, compression="gzip", compression_opts=4, fletcher32=True)

    def append(self, example):
        for name, feature in self.features.items():
            if feature.length:
                self.buffers[name][self.rows, : len(example[name])] = example[name]
            else:
                self.buffers[name][self.rows] = example[name]
        self.rows += 1
        if self.rows == self.EXAMPLES:
            self.flush()

    def flush(self):
        for name, array in self.arrays.items():
            array.resize(len(array) + self.rows, axis=0)
            array[len(array) - self.rows:] = self.buffers[name][: self.rows]
            self.buffers[name].fill(self.features[name].pad)
        self.rows = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.rows:
            self.flush()
        self.file.close()


def compare(padded, ragged, features):
    """Compares a file of Writer with one of `etc prepare`; returns the number of examples and a list of differences."""
    differences = []
    with h5py.File(padded) as file, h5py.File(ragged) as other:
        examples = len(next(iter(file.values())))
        for name, feature in features.items():
            found, group = file[name][:], other["examples"][name]
            values = group["values"][:]
            if feature.length:
                lengths = numpy.diff(group["offsets"][:])
                if len(lengths) != len(found):
                    differences.append(f"{name}: {len(found)} examples, {len(lengths)} of etc prepare")
                    continue
                real = numpy.arange(feature.length) < lengths[:, None]
                expected = numpy.full(found.shape, feature.pad, found.dtype)
                expected[real] = values
            else:
                expected = values
            if expected.shape != found.shape:
                differences.append(f"{name}: {len(found)} examples, {len(expected)} of etc prepare")
            elif not numpy.array_equal(found, expected):
                place = numpy.argwhere(found != expected)[0]
                differences.append(f"{name}: example {place[0]}, place {place[1:].tolist()}: {found[tuple(place)]}, "
                                   f"of etc prepare {expected[tuple(place)]}")
    return examples, differences
