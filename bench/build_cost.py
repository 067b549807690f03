#!/usr/bin/env python3
"""Compile time of a build: the most expensive object files and the totals by folder.

bench/build_cost.py [BUILD] [--dearest N] [--measure]

BUILD (default build/cpu) is a folder that ninja has built. Its log records the start and end of each compiler call.
The calls ran in parallel, so these are wall times, and they are too high where more compilers ran than the machine has
processors. --measure compiles the N most expensive files again, one at a time and without a compiler cache, and prints
their CPU seconds.
"""
import argparse
import collections
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile


def seconds_by_object(build):
    """Object file → wall seconds of its latest compilation."""
    seconds = {}
    with open(os.path.join(build, ".ninja_log"), encoding="utf-8") as log:
        for line in log:
            if line.startswith("#"):
                continue
            start, end, _, output, _ = line.rstrip("\n").split("\t")
            if output.endswith(".o") and os.path.exists(os.path.join(build, output)):
                seconds[output] = (int(end) - int(start)) / 1000
    return seconds


def folder_of(source):
    return os.path.dirname(source) or "."


def source_of(output):
    """"tasks/CMakeFiles/etc_tasks.dir/nq/feed.cpp.o" → "tasks/nq/feed.cpp"."""
    target, _, rest = output.partition("CMakeFiles/")
    return os.path.normpath(target + rest.split("/", 1)[1].replace("__", ".."))[: -len(".o")]


def compile_alone(build, output):
    """CPU seconds of one compiler call."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entry = next(e for e in json.load(file) if f" -o {output} " in e["command"])
    words = [w for w in shlex.split(entry["command"]) if not w.endswith("ccache")]
    with tempfile.NamedTemporaryFile(suffix=".o") as target:
        words[words.index("-o") + 1] = target.name
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, cwd=entry["directory"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build/cpu")
    parser.add_argument("--dearest", type=int, default=10)
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    try:
        seconds = seconds_by_object(options.build)
    except OSError as error:
        sys.exit(f"build_cost: {error}: expected a folder that ninja has built (./run build)")

    folders = collections.Counter()
    files = collections.Counter()
    for output, taken in seconds.items():
        folders[folder_of(source_of(output))] += taken
        files[folder_of(source_of(output))] += 1
    print(f"{len(seconds)} object files, {sum(seconds.values()):.0f} compiler seconds by the clock\n")
    print(f"{'seconds':>8} {'files':>6}  folder")
    for folder, taken in folders.most_common():
        print(f"{taken:8.1f} {files[folder]:6d}  {folder}")
    print(f"\n{'seconds':>8}" + (f" {'CPU s':>7}" if options.measure else "") + "  dearest files")
    for output, taken in sorted(seconds.items(), key=lambda item: -item[1])[: options.dearest]:
        alone = f" {compile_alone(options.build, output):7.1f}" if options.measure else ""
        print(f"{taken:8.1f}{alone}  {source_of(output)}")


if __name__ == "__main__":
    main()
