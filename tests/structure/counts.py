#!/usr/bin/env python3
"""Measures the readability of the source tree and prints one table.

    tests/structure/counts.py                     prints the table
    tests/structure/counts.py --list              prints the table and every finding with its place
    tests/structure/counts.py --check [FOLDER]    prints only what exceeds its limit (in the tree FOLDER); fails if
                                                  anything does
    tests/structure/counts.py --list --check      both, reading the sources once; what exceeds its limit goes to
                                                  standard error

The sources are read as text, without a compiler. Strings and comments are blanked where they would cause false matches.
- Comment share: the share of a folder's non-blank lines (without its subfolders) that contain `//`.
- Functions: a `{` outside of other functions is a function if the text since the last `;`, `{` or `}` has a parameter
  list and no `=`. The lines of a function are counted from the first line of that text to the closing brace. Lambdas
  count as part of the enclosing function.
- Parameters: from the commas of the first parameter list of a declaration or definition, without `<…>` and nested
  `(…)`. A declaration and its definition in the same folder count once.
- Operators: headers of etc_core/ops with a KernelSlot, and the attention operator. An operator has a naive reference if
  a test of its name (tests/core/ops/NAME*_test.cpp, tests/sparse/reference_test.cpp) includes a file of
  tests/reference.
- Repeats: pairs of runs of at least 6 equal lines at different places of the product code, each pair as long as
  possible. White space and comments are ignored; blank lines, preprocessor lines, namespaces and lines with only braces
  do not count.
"""
import collections
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = ["etc_core", "sparse", "data", "tasks"]
KERNELS = ["sparse", "sparse/cpu", "sparse/cuda", "etc_core/ops/cpu", "etc_core/ops/cuda"]
SOURCES = {".h", ".cpp", ".cu"}
MOST_LINES, MOST_PARAMETERS, RUN = 50, 6, 6
# Limits of --check. A function with more parameters must be listed here with a reason: {"folder/file.h name": "why"}.
MANY_PARAMETERS = {}
MOST_LONG_FUNCTIONS, MOST_REPEATS = 16, 12


def sources(folders, deep=True):
    for folder in folders:
        paths = (ROOT / folder).rglob("*") if deep else (ROOT / folder).glob("*")
        yield from sorted(p for p in paths if p.suffix in SOURCES)


def name_of(path):
    return str(path.relative_to(ROOT))


def blanked(text):
    """Replaces comments, preprocessor lines and string literals by blanks; line numbers do not change."""
    def blanks(match):
        return "\n".join(" " * len(line) for line in match.group().split("\n"))
    token = r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])\''
    text = re.sub(token, blanks, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blanks, text, flags=re.M)


# ---- Comments and lengths. ----

def comment_share(folder):
    lines = [line for path in sources([folder], deep=False) for line in path.read_text().splitlines() if line.strip()]
    return sum("//" in line for line in lines) / len(lines)


def longest_source():
    return max((len(path.read_text().splitlines()), name_of(path)) for path in sources(PRODUCT))


def readme_lengths():
    deeper = [path for folder in PRODUCT + ["bench", "tests"] for path in sorted((ROOT / folder).rglob("README.md"))]
    return [(len(path.read_text().splitlines()), name_of(path)) for path in [ROOT / "README.md", *deeper]]


# ---- Functions. ----

def without_angles(text):
    """Removes template argument lists `<…>` that follow a name, the innermost first; a comparison `a < b` stays."""
    before = None
    while before != text:
        before, text = text, re.sub(r"(\b\w+|operator)\s*<[^<>;{}]*>", r"\1", text)
    return text


def head_of(text):
    """(name, number of parameters) of a declaration's text; None if it does not declare a function."""
    qualifiers = r"\b(?:alignas|noexcept|decltype|__attribute__|__launch_bounds__)\s*\([^()]*\)"
    text = re.sub(qualifiers, " ", without_angles(text))
    found = re.search(r"(operator\s*(?:\(\)|[^\s\w(]+)|[\w~:]+)\s*\(", text)
    if found is None or re.search(r"=(?!=)", text[:found.start()]):
        return None
    name = found.group(1)
    words = ("if", "for", "while", "switch", "return", "static_assert", "sizeof", "catch")
    if name in words or re.fullmatch("[A-Z_0-9]+", name):  # names in capitals are macros
        return None
    depth, commas, empty = 0, 0, True
    for c in text[found.end():]:
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                break
            depth -= 1
        elif c == "," and depth == 0:
            commas += 1
        empty = empty and c.isspace()
    return name.split("::")[-1], 0 if empty else commas + 1


def functions(path):
    """Declarations and definitions outside of functions: (name, parameters, first line, number of lines; None if only
    declared)."""
    text = blanked(path.read_text())
    start, stack, opened = 0, [], None  # start of the declaration; kinds of the open braces; the current function
    for match in re.finditer(r"[{};]", text):
        at, c = match.start(), match.group()
        piece = text[start:at]
        first = text.count("\n", 0, start + len(piece) - len(piece.lstrip())) + 1
        inside = "function" in stack
        if c == ";":
            if not inside and "initialiser" not in stack:
                head = head_of(re.sub(r"^\s*(?:public|private|protected)\s*:", "", piece))
                if head is not None and not re.match(r"\s*(?:using|typedef|friend|return|namespace)\b", piece):
                    yield *head, first, None
            if "initialiser" not in stack:
                start = at + 1
            continue
        if c == "}":
            kind = stack.pop() if stack else None
            if kind == "function":
                yield *opened[:2], opened[2], text.count("\n", 0, at) + 1 - opened[2] + 1
            if kind != "initialiser":
                start = at + 1
            continue
        plain = re.sub(r"\btemplate\s*", "", without_angles(piece))
        if inside or "initialiser" in stack:
            stack.append("block" if inside else "initialiser")
        elif re.search(r"\)\s*(?:noexcept\s*)?:.*[\w>]\s*$", plain, flags=re.S) and not re.search(r"\)\s*$", plain):
            stack.append("initialiser")  # of a member in a constructor's initialiser list: a_{1}
        elif re.search(r"\b(?:namespace|class|struct|union|enum|extern)\b(?![^(]*\()", plain):
            stack.append("scope")
            start = at + 1
        elif (head := head_of(piece)) is not None:
            opened = (*head, first)
            stack.append("function")
            start = at + 1
        else:
            stack.append("initialiser")  # = {…}, name{…}, or a lambda assigned to a variable


@functools.cache
def all_functions():
    long, many, seen = [], [], set()
    for path in sources(PRODUCT):
        for name, parameters, line, lines in functions(path):
            if lines is not None and lines > MOST_LINES:
                long.append((lines, f"{name_of(path)}:{line} {name}"))
            if parameters > MOST_PARAMETERS and (path.parent, name, parameters) not in seen:
                seen.add((path.parent, name, parameters))
                many.append((parameters, f"{name_of(path)}:{line} {name}"))
    return sorted(long, reverse=True), sorted(many, reverse=True)


# ---- Naive references. ----

def operators():
    """{operator: whether one of its tests uses tests/reference}"""
    uses = re.compile(r'#include "tests/reference/')
    found = {}
    for path in sorted((ROOT / "etc_core/ops").glob("*.h")):
        if "KernelSlot<" not in path.read_text():
            continue
        tests = (ROOT / "tests/core/ops").glob(f"{path.stem}*_test.cpp")
        found[path.stem] = any(uses.search(test.read_text()) for test in tests)
    found["attention"] = bool(uses.search((ROOT / "tests/sparse/reference_test.cpp").read_text()))
    return found


# ---- Repeats. ----

def code_lines(path):
    """[(line number, text)] of the lines that count for repeats; comments and extra white space are removed."""
    kept = []
    text = path.read_text()
    for number, (line, plain) in enumerate(zip(text.splitlines(), blanked(text).splitlines()), 1):
        if not plain.strip() or re.fullmatch(r"[\s{}();,]*", plain):
            continue
        if re.match(r"\s*(namespace\b|}\s*(//.*)?$|HWY_(BEFORE|AFTER)_NAMESPACE|using namespace\b)", plain):
            continue
        kept.append((number, " ".join(re.sub(r"\s//.*", "", line).split())))
    return kept


@functools.cache
def repeats():
    """[(length, place, other place)]: pairs of maximal runs of equal lines."""
    files = [(name_of(path), code_lines(path)) for path in sources(PRODUCT)]
    windows = collections.defaultdict(list)
    for file, (_, lines) in enumerate(files):
        for i in range(len(lines) - RUN + 1):
            windows[tuple(text for _, text in lines[i:i + RUN])].append((file, i))
    pairs = {(a, b) for places in windows.values() for n, a in enumerate(places) for b in places[n + 1:]}
    found = []
    for (file_a, i), (file_b, j) in pairs:
        if ((file_a, i - 1), (file_b, j - 1)) in pairs:
            continue  # not the first window of its run
        length = RUN
        while ((file_a, i + length - RUN + 1), (file_b, j + length - RUN + 1)) in pairs:
            length += 1
        if file_a == file_b and j - i < length:
            continue  # the two runs overlap, as in a list of equal lines
        (name_a, a), (name_b, b) = files[file_a], files[file_b]
        found.append((length, f"{name_a}:{a[i][0]}", f"{name_b}:{b[j][0]}"))
    return sorted(found, reverse=True)


# ---- Limits. ----

def over_limit():
    """One line for each thing that exceeds its limit."""
    long, many = all_functions()
    found = []
    for count, place in many:
        file, name = re.fullmatch(r"(.*):\d+ (\S+)", place).groups()
        if f"{file} {name}" not in MANY_PARAMETERS:
            found.append(f"{place}: {count} parameters, expected at most {MOST_PARAMETERS} (name them in a struct)")
    if len(long) > MOST_LONG_FUNCTIONS:
        found += [f"{len(long)} functions of more than {MOST_LINES} lines, expected at most {MOST_LONG_FUNCTIONS}:"]
        found += [f"  {lines} lines: {place}" for lines, place in long]
    repeated = repeats()
    if len(repeated) > MOST_REPEATS:
        found.append(f"{len(repeated)} pairs of repeated runs, expected at most {MOST_REPEATS} (--list names them)")
    return found


def main():
    global ROOT
    if sys.argv[1:2] == ["--check"] and len(sys.argv) <= 3:
        ROOT = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else ROOT
        found = over_limit()
        print("\n".join(found) if found else "within all limits")
        sys.exit(bool(found))
    if sys.argv[1:] not in ([], ["--list"], ["--list", "--check"]):
        sys.exit("usage: tests/structure/counts.py [--list | --check [FOLDER] | --list --check]")
    long, many = all_functions()
    lines, longest = longest_source()
    known, repeated = operators(), repeats()
    missing = [name for name, has in known.items() if not has]

    def first_of(findings, word):
        return f"{len(findings)}" + (f", {word} {findings[0][0]}: {', '.join(findings[0][1:])}" if findings else "")

    rows = [(f"comment lines, {folder}", f"{100 * comment_share(folder):.1f} %") for folder in KERNELS]
    rows += [("longest source file", f"{lines} lines, {longest}"),
             (f"functions of more than {MOST_LINES} lines", first_of(long, "longest")),
             (f"functions with more than {MOST_PARAMETERS} parameters", first_of(many, "most")),
             ("operators with a naive reference", f"{len(known) - len(missing)} of {len(known)}"
              + (f"; without: {', '.join(missing)}" if missing else ""))]
    rows += [(f"lines of {name}", f"{count}") for count, name in readme_lengths()]
    rows += [(f"pairs of repeated runs of {RUN} lines and more", first_of(repeated, "longest"))]
    width = max(len(what) for what, _ in rows)
    for what, figure in rows:
        print(f"{what:{width}}  {figure}")
    if sys.argv[1:2] == ["--list"]:
        for title, findings in {"functions of many lines": long, "functions with many parameters": many,
                                "repeated runs": repeated}.items():
            print(f"\n{title}")
            for finding in findings:
                print("  " + "  ".join(str(part) for part in finding))
    if "--check" in sys.argv:
        found = over_limit()
        print("\n".join(found) if found else "within all limits", file=sys.stderr)
        sys.exit(bool(found))


if __name__ == "__main__":
    main()
