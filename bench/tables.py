#!/usr/bin/env python3
"""Generates the tables of results in README.md and below bench (README.md, RESULTS.md, experiments) from the raw
numbers in bench/results.

    bench/tables.py            rewrites the text between `<!-- table KIND FILE… -->` and `<!-- end -->`
    bench/tables.py --check    changes nothing; lists the documents whose tables differ from the raw numbers, exit code
                               1 if there are any

The caption of a table names its raw numbers and, where they were recorded, the machine, the number of rounds and the
command. Ratios compare programs with the same number type.
"""
import csv
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
DOCUMENTS = [ROOT / "README.md", ROOT / "bench" / "README.md", ROOT / "bench" / "RESULTS.md", ROOT / "bench" / "experiments" / "README.md",
             ROOT / "bench" / "experiments" / "FINE_TUNING.md", ROOT / "bench" / "experiments" / "PRETRAINING.md",
             ROOT / "bench" / "experiments" / "POSITIONS.md",
             ROOT / "bench" / "experiments" / "LANGUAGE_MODEL.md", ROOT / "bench" / "experiments" / "ATTENTION.md",
             ROOT / "bench" / "experiments" / "TRANSLATION.md"]
NAMES = {"bert": "BERT, full attention", "flex": "compiled FlexAttention, window and globals", "longt5": "LongT5",
         "longformer": "Longformer", "modernbert": "ModernBERT", "bigbird": "BigBird",
         "lfm2": "LFM2 350M, causal", "onnxruntime": "BERT in ONNX Runtime", "openvino": "BERT in OpenVINO"}


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def machine_text(machine):
    """Description of a machine, for example `AMD EPYC, AVX2 alone`."""
    if machine is None:
        return "the machine's kind was not recorded"
    widest = "AMX" if machine["amx_bf16"] else "AVX-512" if machine["avx512"] else "AVX2 alone"
    family = f" ({machine['family']})" if "family" in machine else ""
    return f"{machine['model']}{family}, {widest}"


class Comparison:
    """Results of bench/peers/compare.py."""

    def __init__(self, name, folder=RESULTS):
        self.name, self.data = name, json.loads((folder / name).read_text())
        self.points = {(p["program"], p["length"]): p["rounds"] for p in self.data["points"]}
        self.programs = sorted({program for program, _ in self.points}, key=lambda p: (not p.startswith("etc "), p))
        self.lengths = sorted({length for _, length in self.points})

    def seconds(self, program, length):
        return self._median(program, length, "cpu_s")

    def megabytes(self, program, length):
        return self._median(program, length, "peak_mb")

    def _median(self, program, length, what):
        rounds = self.points.get((program, length))
        return median([r[what] for r in rounds]) if rounds else None

    def rounds(self):
        """Number of rounds: `2`, or `1 to 4` if not every point was measured in every round."""
        rounds = sorted({len(rounds) for rounds in self.points.values()})
        return f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"

    def caption(self):
        what = "a training step" if self.data["mode"] == "train" else "inference"
        threads = self.data["threads"]
        return (f"{machine_text(self.data['machine'])}; {what}, {threads} thread{'s' if threads > 1 else ''}; "
                f"rounds counted: {self.rounds()}; raw numbers: `bench/results/{self.name}`; "
                f"`{self.data['command']}`.")

    def ratio(self, program, length):
        """Ratio of CPU time to the fastest peer of the same number type, such as `0.65 of flex`; `–` if there is
        none."""
        number_type = program.split()[1].rstrip(",")
        peers = [(self.seconds(peer, length), peer.split()[0]) for peer in self.programs
                 if not peer.startswith("etc ") and peer.endswith(f" {number_type}") and self.seconds(peer, length)]
        own = self.seconds(program, length)
        return f"{own / min(peers)[0]:.2f} of {min(peers)[1]}" if own and peers else "–"


def comparison_table(name, folder=RESULTS):
    """CPU time and memory of every program by length, and the ratios of etc to the fastest peer of the same number
    type."""
    result = Comparison(name, folder)
    lines = [result.caption(), "", "| CPU seconds, peak RSS in MB | " + " | ".join(f"{n:,}" for n in result.lengths) + " |",
             "|---" * (len(result.lengths) + 1) + "|"]
    for program in result.programs:
        cells = [f"{result.seconds(program, n):.2f}, {result.megabytes(program, n):,.0f}"
                 if (program, n) in result.points else "–" for n in result.lengths]
        lines.append(f"| {program} | " + " | ".join(cells) + " |")
    for program in result.programs:
        ratios = [result.ratio(program, n) for n in result.lengths]
        if program.startswith("etc ") and set(ratios) != {"–"}:
            lines.append(f"| {program} / fastest peer of that type | " + " | ".join(ratios) + " |")
    return lines


def at_length_table(name, length, number_type):
    """Programs at one length and number type, the fastest first."""
    result, length = Comparison(name), int(length)
    programs = [p for p in result.programs
                if (p, length) in result.points and p.split()[1].rstrip(",") == number_type]
    lines = [result.caption(), "", f"| {number_type}, {length:,} tokens | CPU seconds | peak RSS, MB |", "|---|---|---|"]
    for program in sorted(programs, key=lambda p: result.seconds(p, length)):
        ours = program.startswith("etc ")
        label = "etc" + (", residual scores" if "scores" in program else "") if ours else NAMES[program.split()[0]]
        mark = "**" if ours else ""
        lines.append(f"| {mark}{label}{mark} | {mark}{result.seconds(program, length):.1f}{mark} | "
                     f"{mark}{result.megabytes(program, length):,.0f}{mark} |")
    return lines


def ratios_table(*names):
    """Ratios of CPU time of etc to the fastest peer of the same number type, one row per file, mode and number type.
    The newest file comes first; a length that it contains is left out of the rows of later files of that machine."""
    shown = set()
    lines = ["| etc / fastest peer, CPU seconds | tokens: ratio | machine, rounds | raw numbers |", "|---" * 4 + "|"]
    for result in map(Comparison, names):
        what = "training step" if result.data["mode"] == "train" else "inference"
        for program in result.programs:
            kind = (machine_text(result.data["machine"]), what, program)
            lengths = [n for n in result.lengths if result.ratio(program, n) != "–" and (kind, n) not in shown]
            shown |= {(kind, n) for n in lengths}
            ratios = [f"{n:,}: {result.ratio(program, n)}" for n in lengths]
            if program.startswith("etc ") and ratios:
                lines.append(f"| {what}, {program.removeprefix('etc ')} | {'; '.join(ratios)} | "
                             f"{machine_text(result.data['machine'])}, {result.rounds()} | `bench/results/{result.name}` |")
    return lines


def attention_table(name, folder=RESULTS):
    """Results of bench/peers/attention.py; of our operators only those with global tokens, without scores and dropout."""
    data = json.loads((folder / name).read_text())
    large = median(data["gflops"]["oneDNN 2048x2048x2048"])
    rounds = max(len(values) for values in data["gflops"].values())
    lines = [f"{machine_text(data['machine'])}; rounds: {rounds}; torch {data['torch']}; raw numbers: "
             f"`bench/results/{name}`; `bench/peers/attention.py`.", "",
             "| useful GFLOP/s, 1 thread | rate | of the large product |", "|---|---|---|"]
    return lines + [f"| {line} | {median(values):.1f} | {100 * median(values) / large:.0f} % |"
                    for line, values in data["gflops"].items() if median(values) > 0
                    and not re.search("scores|dropout|window only|hard g2l", line)]


def memory_table(name):
    """Results of bench/memory.py."""
    data = json.loads((RESULTS / name).read_text())
    points = data["points"]
    lines = [f"{machine_text(data['machine'])}; 1 call; raw numbers: `bench/results/{name}`; `{data['command']}`.", "",
             "| base model | scores | L | G | forecast, MB | process, MB | score bytes, MB | CPU s |", "|---" * 8 + "|"]
    for point in points:
        layers = f", {point['layers']} layers" if point["layers"] != 12 else ""
        checkpointed = ", every layer checkpointed" if point["checkpointing_period"] else ""
        kind = ("inference" if point["mode"] == "infer" else "training step") + layers + checkpointed
        lines.append(f"| {kind} | {point['scores']} | {point['long_tokens']:,.0f} | {point['global_tokens']:,.0f} | "
                     f"{point['forecast_mb']:,.0f} | {point['process_peak_mb']:,.0f} | {point['scores_mb']:,.0f} | "
                     f"{point['cpu_seconds']:.1f} |")
    return lines


def lengths_table(name):
    """Results of `etc benchmark` (benchmark.csv)."""
    with open(RESULTS / name) as file:
        rows = list(csv.DictReader(file))
    lines = [f"Raw numbers: `bench/results/{name}`.", "",
             "| scores | L | G | seconds | forecast, s | tokens/s | peak of the buffers, MB | forecast, MB |",
             "|---" * 8 + "|"]
    if "program_mb" in rows[0]:  # newer files contain the peak RSS of the process, not only that of the buffers
        lines[2] = lines[2].replace("peak of the buffers", "peak of the process")
    return lines + [f"| {r['kind']} | {int(r['long_tokens']):,} | {int(r['global_tokens']):,} | {float(r['seconds']):.2f} "
                    f"| {float(r['forecast_seconds']):.2f} | {float(r['tokens_per_second']):,.0f} | "
                    f"{float(r['peak_mb']):,.0f} | {float(r['forecast_mb']):,.0f} |" for r in rows]


def text_table(name):
    """The unchanged output of one measurement of `./run bench --output bench/results`."""
    return [f"Raw: `bench/results/{name}`.", "", "```", (RESULTS / name).read_text().strip(), "```"]


def waiting_table(name):
    """Results of bench/waiting_threads.py."""
    data = json.loads((RESULTS / name).read_text())
    seconds = {(p["way"], p["beside"]): [r["wall_s"] for r in p["rounds"]] for p in data["points"]}
    ways = list(dict.fromkeys(p["way"] for p in data["points"]))
    beside = sorted({p["beside"] for p in data["points"]})
    rounds = len(data["points"][0]["rounds"])
    lines = [f"{machine_text(data['machine'])}, {data['processors']} processors, load before {data['load_before']:.1f}; "
             f"medians of {rounds}; raw numbers: `bench/results/{name}`; `{data['command']}`.", "",
             f"| seconds by the clock, {data['steps']} steps, beside so many programs | "
             + " | ".join(str(n) for n in beside) + " |", "|---" * (len(beside) + 1) + "|"]
    return lines + [f"| {way} | " + " | ".join(f"{median(seconds[way, n]):.2f}" for n in beside) + " |" for way in ways]


def processes_table(name):
    """Results of bench/processes.py."""
    data = json.loads((RESULTS / name).read_text())
    words = {1: "one", 2: "two", 3: "three", 4: "four", 8: "eight"}
    shapes = " ".join(row["shape"] for row in data["rows"])
    lines = [f"{machine_text(data['machine'])}; {data['layers']} layer{'s' if data['layers'] > 1 else ''}, {data['batch']} texts of {data['tokens']:,} tokens; raw numbers: "
             f"`bench/results/{name}`; `bench/processes.py --layers {data['layers']} --tokens {data['tokens']} --batch {data['batch']} "
             f"--steps {data['steps']} --rounds {data['rounds']} --shapes {shapes} --output bench/results/{name}`.", "",
             "| | seconds a step, median (least to most) | of the first line | MB sent a step | by one process at most (its even share) | seconds waited |",
             "|---" * 6 + "|"]
    for row in data["rows"]:
        processes, threads, *bucket = map(int, row["shape"].split("x"))
        shape = (f"{words[processes]} process{'es' if processes > 1 else ''}, {words[threads]} thread{'s' if threads > 1 else ''}"
                 f"{' each' if processes > 1 else ''}{', nothing sent before the end of the backward pass' if bucket else ''}")
        sent = [f"{row['sent_mb']:,.1f}", f"{row['most_of_one_mb']:,.1f} ({row['sent_mb'] / processes:,.1f})", f"{row['waiting_s']:.2f}"]
        lines.append(f"| {shape} | {row['step_s']:.2f} ({row['least_s']:.2f} to {row['most_s']:.2f}) | "
                     f"{row['step_s'] / data['rows'][0]['step_s']:.2f} | {' | '.join(sent if processes > 1 else ['', '', ''])} |")
    return lines


def offset_table(name):
    """Results of bench/experiments/offset_task.py."""
    with open(RESULTS / name) as file:
        rows = list(csv.DictReader(file))
    lines = [f"Raw numbers: `bench/results/{name}`.", "",
             "| positions | accuracy at the end, by seed | steps until 95 %, by seed | seconds |", "|---" * 4 + "|"]
    for method in dict.fromkeys(row["method"] for row in rows):
        runs = {}
        for row in rows:
            if row["method"] == method:
                runs.setdefault(row["seed"], []).append(row)
        reached = [next((row["step"] for row in run if float(row["accuracy"]) >= 0.95), "–") for run in runs.values()]
        ends = ", ".join(f"{float(run[-1]['accuracy']):.3f}" for run in runs.values())
        seconds = median([float(run[-1]["seconds"]) for run in runs.values()])
        lines.append(f"| {method} | {ends} | {', '.join(reached)} | {seconds:.0f} |")
    return lines


def copying_table(name):
    """Results of bench/experiments/memory_task.py."""
    with open(RESULTS / name) as file:
        ends = [row for row in csv.DictReader(file) if row["answer_accuracy"]]
    lines = [f"Raw numbers: `bench/results/{name}`.", "",
             "| memory | right answers, by seed | bits per character, by seed | steps | seconds of a run |",
             "|---" * 5 + "|"]
    for memory in dict.fromkeys(row["memory_length"] for row in ends):
        runs = [row for row in ends if row["memory_length"] == memory]
        answers = ", ".join(f"{float(row['answer_accuracy']):.3f}" for row in runs)
        bits = ", ".join(f"{float(row['bits_per_character']):.3f}" for row in runs)
        seconds = median([float(row["seconds"]) for row in runs])
        lines.append(f"| {memory} | {answers} | {bits} | {runs[-1]['step']} | {seconds:.0f} |")
    return lines


def csv_table(name):
    """All rows and columns of a CSV file, unchanged."""
    with open(RESULTS / name) as file:
        header, *rows = csv.reader(file)
    lines = [f"Raw numbers: `bench/results/{name}`.", "", f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def dense_table(name, folder=RESULTS):
    """Results of bench/peers/dense.py."""
    data = json.loads((folder / name).read_text())
    points = {(p["program"], p["mode"], p["length"]): p["rounds"] for p in data["points"]}
    rounds, threads = len(data["points"][0]["rounds"]), data["threads"]
    lines = [f"{machine_text(data['machine'])}; {threads} thread{'s' if threads > 1 else ''}; medians of {rounds} rounds; "
             f"torch {data['torch']}, transformers {data['transformers']}; raw numbers: `bench/results/{name}`; "
             f"`{data['command']}`.", "",
             "| eight texts, the longest of | etc, CPU s | etc with scores | BERT, padded | etc / BERT | scores on / off "
             "| peak RSS in MB, etc and BERT |", "|---" * 7 + "|"]
    for mode, length in dict.fromkeys((p["mode"], p["length"]) for p in data["points"]):
        def middle(program, what):
            return median([r[what] for r in points[program, mode, length]])

        own, scores, bert = (middle(program, "cpu_s") for program in ("etc", "etc, scores", "bert"))
        kind = "a training step" if mode == "train" else "inference"
        lines.append(f"| {length} tokens, {kind} | {own:.2f} | {scores:.2f} | {bert:.2f} | {own / bert:.2f} | "
                     f"{scores / own:.2f} | {middle('etc', 'peak_mb'):,.0f}, {middle('bert', 'peak_mb'):,.0f} |")
    return lines


def first_answer_table(name):
    """Results of bench/first_answer.py for one program."""
    data = json.loads((RESULTS / name).read_text())
    threads = data["threads"]
    lines = [f"{machine_text(data['machine'])}; {threads} thread{'s' if threads > 1 else ''}; {data['rounds']} rounds, load "
             f"{data['load']:.1f}; weights of {data['weights_mb']:,.0f} MB in the page cache; raw numbers: `bench/results/{name}`; "
             f"`{data['command']}`.", "", "| process | seconds | CPU seconds | peak RSS, MB |", "|---|---|---|---|"]
    labels = {"cat": "`cat` of the weights", "encode": "`etc encode`, base model, a text of 14 words", "help": "`etc --help`"}
    for key, label in labels.items():
        figures = data["figures"][key]
        cells = [f"{figures[what][0]:.3f} ({figures[what][1]:.3f} to {figures[what][2]:.3f})" for what in ("seconds", "cpu_seconds")]
        lines.append(f"| {label} | {' | '.join(cells)} | {figures['peak_mb'][0]:,.0f} |")
    return lines


def position_cost_table(name):
    """Results of bench/position_cost.py; the ratios are medians of the ratios of each round."""
    data = json.loads((RESULTS / name).read_text())
    points = {(p["length"], p["method"], p["mode"]): p["cpu_s"] for p in data["points"]}
    methods = list(dict.fromkeys(p["method"] for p in data["points"]))
    kinds = [(length, mode) for length in data["lengths"] for mode in ("infer", "train")]
    titles = [f"{length} tokens, {'inference' if mode == 'infer' else 'a training step'}" for length, mode in kinds]
    lines = [f"{machine_text(data['machine'])}; {data['threads']} thread{'s' if data['threads'] > 1 else ''}; CPU seconds and, in "
             f"brackets, of {methods[0]} positions; medians of {len(data['points'][0]['cpu_s'])} rounds; raw numbers: "
             f"`bench/results/{name}`; `{data['command']}`.", "",
             "| dense base | " + " | ".join(titles) + " |", "|---" * (1 + len(kinds)) + "|"]
    for method in methods:
        cells = []
        for length, mode in kinds:
            own, plain = points[length, method, mode], points[length, methods[0], mode]
            cells.append(f"{median(own):.2f} ({median([a / b for a, b in zip(own, plain)]):.2f})")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


def patterns_table(name):
    """Results of bench/patterns.py: the sum of the times of forward and backward, and the larger of their memory
    needs."""
    data = json.loads((RESULTS / name).read_text())
    rows = data["rows"]
    points = {(r["pattern"], int(r["tokens"])): r for r in rows}
    lengths = sorted({tokens for _, tokens in points})
    lines = [f"{machine_text(data['machine'])}; {rows[0]['heads']} heads of 64, {rows[0]['threads']} thread; raw numbers: "
             f"`bench/results/{name}`; `{data['command']}`.", "", "| seconds, MB | " + " | ".join(f"{n:,}" for n in lengths) + " |",
             "|---" * (len(lengths) + 1) + "|"]
    for pattern in dict.fromkeys(r["pattern"] for r in rows):
        cells = []
        for n in lengths:
            row = points.get((pattern, n))
            seconds = float(row["forward_s"]) + float(row["backward_s"]) if row else 0
            size = max(int(row["forward_bytes"]), int(row["backward_bytes"])) / 1e6 if row else 0
            cells.append(f"{seconds:.3g}, {size:,.0f}" if row else "–")
        lines.append(f"| {pattern} | " + " | ".join(cells) + " |")
    return lines


KINDS = {"csv": csv_table, "processes": processes_table, "dense": dense_table, "patterns": patterns_table, "position_cost": position_cost_table, "first_answer": first_answer_table, "offset": offset_table, "copying": copying_table, "waiting": waiting_table, "comparison": comparison_table, "at_length": at_length_table, "ratios": ratios_table,
         "attention": attention_table, "memory": memory_table, "lengths": lengths_table, "text": text_table}


def filled(text):
    """Returns the document with all tables regenerated."""

    def table(match):
        kind, *arguments = match.group(1).split()
        return f"<!-- table {match.group(1)} -->\n" + "\n".join(KINDS[kind](*arguments)) + "\n<!-- end -->"

    return re.sub(r"<!-- table ([^>]+?) -->\n.*?<!-- end -->", table, text, flags=re.S)


def main():
    check, stale = sys.argv[1:] == ["--check"], []
    if sys.argv[1:] and not check:
        sys.exit("usage: bench/tables.py [--check]")
    for path in DOCUMENTS:
        before = path.read_text()
        after = filled(before)
        if after == before:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            temporary = path.with_suffix(".tmp")
            temporary.write_text(after)
            os.replace(temporary, path)
    if check and stale:
        sys.exit(f"tables: differ from the raw numbers: {', '.join(stale)} (run bench/tables.py)")


if __name__ == "__main__":
    main()
