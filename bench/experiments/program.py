"""Helpers of the experiments: calls of `etc`, and writing of CSV files."""
import csv
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def add_option(parser):
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/cpu/etc", help="path of `etc`")


class Program:
    """`program("eval", "--model", …)` runs the program and returns its standard output; an error ends the
    experiment."""

    def __init__(self, path):
        if not path.exists():
            sys.exit(f"{path} is missing: ./run build")
        self.path = path

    def attempt(self, *words):
        """Runs the program; returns the completed process, also when it failed."""
        words = [str(word) for word in words]
        return subprocess.run([self.path, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __call__(self, *words):
        words = [str(word) for word in words]
        done = self.attempt(*words)
        if done.returncode != 0:
            sys.exit(f"etc {' '.join(words)}\n{done.stderr}")
        return done.stdout

    def metrics(self, *words):
        """{name: value} of a command that prints one metric per line."""
        return {name: float(value) for name, value in (line.split() for line in self(*words).splitlines())}


def write_csv(path, header, rows):
    """Writes a temporary file and renames it atomically, so that an incomplete file never has the final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".csv.tmp")
    with open(temporary, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    os.replace(temporary, path)
