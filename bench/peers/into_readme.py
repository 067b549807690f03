#!/usr/bin/env python3
"""Puts the tables of a folder of results into bench/README.md: whatever stands between `<!-- NAME.md -->` and
`<!-- end -->` becomes the file NAME.md of that folder.

    bench/peers/into_readme.py bench/results
"""
import os
import pathlib
import re
import sys

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


def main():
    results = pathlib.Path(sys.argv[1])
    text, missing = README.read_text(), []

    def table(match):
        path = results / match.group(1)
        if not path.exists():
            missing.append(str(path))
            return match.group(0)
        return f"<!-- {match.group(1)} -->\n{path.read_text().strip()}\n<!-- end -->"

    text = re.sub(r"<!-- (\w+\.md) -->\n.*?<!-- end -->", table, text, flags=re.S)
    temporary = README.with_suffix(".tmp")
    temporary.write_text(text)
    os.replace(temporary, README)
    if missing:
        sys.exit(f"into_readme: not there: {', '.join(missing)} (run bench/peers/all.sh)")


if __name__ == "__main__":
    main()
