"""Reference reader and writer of prepared data sets for the tests of the store; independent of the project, uses only
h5py.

  check_dataset.py check FILE DESCRIPTION   checks that FILE has exactly the content and the layout of DESCRIPTION
  check_dataset.py write FILE DESCRIPTION   writes FILE in this layout, as a program other than etc might

DESCRIPTION is JSON: {"features": [{name, kind, type, align, missing_value, pad_value}], "attributes": {...},
"examples": [{...}], "faults": [{...}], "lengths": {"max_long_len": …, "max_global_len": …}}. If the data set has a
table /gold, it also contains "gold_features" and "gold".
"""
import hashlib
import json
import sys

import h5py
import numpy as np

TYPES = {"u8": "<u1", "i8": "<i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u32": "<u4", "f32": "<f4"}
CHUNK = 65536
REJECT_TEXTS = ("file", "id", "field", "code", "severity", "message")
REJECT_NUMBERS = ("record_index", "byte_offset")
INTEGERS = {"format_version": "<i4", "n_input_records": "<i8", "n_examples": "<i8", "n_rejected": "<i8",
            "n_dropped": "<i8", "labelled": "|u1", "max_long_len": "<i4", "max_global_len": "<i4"}


def reject_features():
    texts = [{"name": name, "kind": "string", "type": "u8"} for name in REJECT_TEXTS]
    return texts + [{"name": name, "kind": "scalar", "type": "i64"} for name in REJECT_NUMBERS]


def borders(lengths):
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype("<i8")


def columns(feature, rows):
    """{name: array} of the HDF5 data sets of one feature, as the layout defines them."""
    cells, dtype = [row[feature["name"]] for row in rows], TYPES[feature["type"]]
    if feature["kind"] == "scalar":
        return {"values": np.array(cells, dtype)}
    if feature["kind"] == "ragged":
        flat = [x for cell in cells for x in cell]
        return {"values": np.array(flat, dtype), "offsets": borders([len(cell) for cell in cells])}
    if feature["kind"] == "string":
        texts = [cell.encode() for cell in cells]
        return {"values": np.frombuffer(b"".join(texts), "u1"), "offsets": borders([len(text) for text in texts])}
    texts = [text.encode() for cell in cells for text in cell]
    return {"values": np.frombuffer(b"".join(texts), "u1"), "item_offsets": borders([len(text) for text in texts]),
            "offsets": borders([len(cell) for cell in cells])}


def tables(description):
    yield "examples", description["features"], description["examples"]
    yield "rejects", reject_features(), description["faults"]
    if "gold" in description:
        yield "gold", description["gold_features"], description["gold"]


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"check_dataset: {what}: expected {wanted!r}, got {got!r}")


def check_text(owner, name, wanted):
    attribute = owner.attrs.get_id(name)
    kind = attribute.get_type()
    expect(f"{name}: rank", attribute.shape, ())
    expect(f"{name}: class", kind.get_class(), h5py.h5t.STRING)
    expect(f"{name}: variable length", kind.is_variable_str(), False)
    expect(f"{name}: padding", kind.get_strpad(), h5py.h5t.STR_NULLPAD)
    expect(f"{name}: character set", kind.get_cset(), h5py.h5t.CSET_UTF8)
    stored = np.zeros((), dtype=f"S{kind.get_size()}")
    attribute.read(stored, mtype=kind)
    expect(f"{name}: size", kind.get_size(), max(1, len(wanted.encode())))
    expect(name, stored.tobytes().rstrip(b"\0").decode(), wanted)


def check_integer(owner, name, wanted, dtype):
    attribute = owner.attrs.get_id(name)
    expect(f"{name}: rank", attribute.shape, ())
    expect(f"{name}: type", attribute.dtype, np.dtype(dtype))
    expect(name, int(owner.attrs[name]), wanted)


def check_data_set(data_set, wanted):
    name, creation = data_set.name, data_set.id.get_create_plist()
    expect(f"{name}: type", data_set.dtype, wanted.dtype)
    expect(f"{name}: largest shape", data_set.maxshape, (None,))
    expect(f"{name}: chunks", data_set.chunks, (CHUNK,))
    filters = [creation.get_filter(i)[0] for i in range(creation.get_nfilters())]
    expect(f"{name}: filters", filters, [h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_FLETCHER32])
    expect(f"{name}: deflate", creation.get_filter(1)[2], (4,))
    expect(f"{name}: time", h5py.h5o.get_info(data_set.id).mtime, 0)
    expect(f"{name}: length", data_set.shape, wanted.shape)
    if data_set[...].tobytes() != wanted.tobytes():
        raise SystemExit(f"check_dataset: {name}: values differ")


def check(path, description):
    with open(path, "rb") as raw:
        expect("superblock version", raw.read(9)[8], 3)
    contents = {}
    with h5py.File(path, "r") as file:
        expect("groups", sorted(file), sorted(table for table, _, _ in tables(description)))
        expect("time of the root", h5py.h5o.get_info(file.id).mtime, 0)
        for table, features, rows in tables(description):
            expect(f"{table}: time", h5py.h5o.get_info(file[table].id).mtime, 0)
            expect(table, sorted(file[table]), sorted(feature["name"] for feature in features))
            owners = {}
            for feature in features:
                group = file[table][feature["name"]]
                wanted = columns(feature, rows)
                expect(group.name, sorted(group), sorted(wanted))
                expect(f"{group.name}: time", h5py.h5o.get_info(group.id).mtime, 0)
                for name, values in wanted.items():
                    check_data_set(group[name], values)
                    contents[f"/{table}/{feature['name']}/{name}"] = values.tobytes()
                notes = {"align", "missing_value", "pad_value"} & {k for k in feature if feature[k] not in (None, "")}
                expect(f"{group.name}: attributes", set(group.attrs), notes)
                if "align" in notes:
                    check_text(group, "align", feature["align"])
                    address = h5py.h5o.get_info(group["offsets"].id).addr
                    expect(f"{group.name}: shared offsets", owners.setdefault(feature["align"], address), address)
                for note in notes - {"align"}:
                    if isinstance(feature[note], str):
                        check_text(group, note, feature[note])
                    else:
                        check_integer(group, note, feature[note], "<i8")
        digest = hashlib.sha256(b"".join(contents[name] for name in sorted(contents))).hexdigest()
        wanted = dict(description["attributes"], **description["lengths"])
        expect("attributes", set(file.attrs), set(wanted) | {"content_sha256"})
        check_text(file, "content_sha256", digest)
        for name, value in wanted.items():
            if name in INTEGERS:
                check_integer(file, name, value, INTEGERS[name])
            else:
                check_text(file, name, value)


def write(path, description):
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        for table, features, rows in tables(description):
            owners = {}
            for feature in features:
                group = file.create_group(f"{table}/{feature['name']}")
                for name, values in columns(feature, rows).items():
                    if name == "offsets" and owners.get(feature.get("align")):
                        group[name] = owners[feature["align"]]
                        continue
                    data_set = group.create_dataset(name, data=values, maxshape=(None,), chunks=(CHUNK,), shuffle=True,
                                                    compression="gzip", compression_opts=4, fletcher32=True)
                    if name == "offsets" and feature.get("align"):
                        owners[feature["align"]] = data_set
        for name, value in dict(description["attributes"], **description["lengths"], content_sha256="").items():
            if name in INTEGERS:
                file.attrs.create(name, value, dtype=INTEGERS[name])
            else:
                file.attrs.create(name, np.array(value.encode(), dtype=f"S{max(1, len(value.encode()))}"))


if __name__ == "__main__":
    action, file_path, description_path = sys.argv[1:]
    with open(description_path, encoding="utf-8") as text:
        {"check": check, "write": write}[action](file_path, json.load(text))
