"""Compares token ids of the program with those of the package `tokenizers`.

check_tokens.py FOLDER reads FOLDER/tokenizer.json and FOLDER/cases.json ([{"text", "ids"}, ...]). For a byte-level
vocabulary it also compares with a tokeniser that the package makes from FOLDER/vocab.json and FOLDER/merges.txt.
"""

import json
import os
import sys
import unicodedata

import tokenizers


def main(folder):
    loaded = [tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))]
    vocab = os.path.join(folder, "vocab.json")
    if os.path.exists(vocab):
        merges = os.path.join(folder, "merges.txt")
        loaded.append(tokenizers.ByteLevelBPETokenizer.from_file(vocab, merges, add_prefix_space=False))
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    compared = 0
    for case in cases:
        if any(unicodedata.category(character) in ("Cn", "Co") for character in case["text"]):
            continue  # program and package may use different versions of Unicode
        compared += 1
        for tokenizer in loaded:
            ids = tokenizer.encode(case["text"], add_special_tokens=False).ids
            if ids != case["ids"]:
                print("text", repr(case["text"]), "expected", ids, "got", case["ids"], file=sys.stderr)
                return 1
    print(compared, "texts of", len(cases), "compared")
    return 0 if compared * 2 >= len(cases) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
