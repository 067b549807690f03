"""Draws pictures (SVG) of measurements with gnuplot, all in one style.

Each picture has a grid, a border on all four sides, axis titles with quantity and unit, and a title that states what
was measured. Each compared program or method has its colour and each variant of it (for example a number type) its
dash; the project's own program is bold.

    bench/picture.py FILE_curves.json…    draws FILE.svg again from the curves that save() has kept
"""
import dataclasses
import json
import pathlib
import shutil
import subprocess
import sys

# Colours that are distinct for all kinds of colour vision (Okabe and Ito, 2008), then darker ones; black is the first.
COLOURS = ["#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933", "#777777"]
DASHES = ["solid", "(9,5)", "(2,4)", "(9,4,2,4)"]
FEW_POINTS = 12  # a curve of at most so many points shows them as marks
# What a reader sees instead of an option's value.
NAMES = {"post_ln": "Post-LN", "pre_ln": "Pre-LN", "realformer_sum": "RealFormer, sum", "realformer_mean": "RealFormer, mean",
         "admin": "ADMIN", "admin_mean": "ADMIN, mean of scores", "none": "no positions", "absolute": "absolute positions",
         "shaw": "Shaw", "shaw_values": "Shaw with values", "t5": "T5", "transformer_xl": "Transformer-XL",
         "huang1": "Huang, method 1", "huang2": "Huang, method 2", "huang3": "Huang, method 3", "huang4": "Huang, method 4",
         "nezha_index": "NEZHA by index", "nezha_signed": "NEZHA by signed distance", "full": "full attention",
         "window": "window of 84 on either side", "bigbird": "BigBird", "performer": "linear attention"}


@dataclasses.dataclass
class Curve:
    points: list  # of (x, y)
    label: str = ""  # "": no entry in the key, for further seeds of a curve
    colour: int = 0  # index into COLOURS
    dash: int = 0  # index into DASHES
    bold: bool = False
    marks: bool = True
    hollow: bool = False  # hollow marks


@dataclasses.dataclass
class Panel:
    title: str
    x: str
    y: str
    curves: list
    logarithmic: str = ""  # "x", "y" or "xy"
    ticks: tuple = ()  # tick positions of x; (): gnuplot's choice
    y_range: str = "[*:*]"


def seed_curves(runs):
    """One curve per seed; all seeds of a method have the same colour. runs: {method: [points of a seed, …]}"""
    return [Curve(points, method if first == 0 else "", colour, colour // len(COLOURS), marks=False)
            for colour, (method, seeds) in enumerate(runs.items()) for first, points in enumerate(seeds)]


def variant_curves(curves):
    """One colour per model and one dash per variant of it. curves: {model or (model, variant): points}"""
    split = [(name if isinstance(name, tuple) else (name, ""), points) for name, points in curves.items()]
    models = list(dict.fromkeys(model for (model, _), _ in split))
    variants = list(dict.fromkeys(variant for (_, variant), _ in split))
    made = []
    for (model, variant), points in split:
        label = NAMES.get(model, model) + (f", {variant}" if variant else "")
        made.append(Curve(points, label, models.index(model), variants.index(variant), marks=len(points) <= FEW_POINTS))
    return made


def in_quotes(text):
    return "'" + text.replace("'", "''") + "'"


def curve_text(curve, data):
    dash = DASHES[curve.dash % len(DASHES)]
    marks = f"linespoints pointtype {4 if curve.hollow else 7} pointsize {1.2 if curve.hollow else 0.6}" if curve.marks else "lines"
    title = f"title {in_quotes(NAMES.get(curve.label, curve.label))} noenhanced" if curve.label else "notitle"
    return (f"{data} using 1:2 with {marks} linewidth {3.5 if curve.bold else 1.5} "
            f"linecolor rgb '{COLOURS[curve.colour % len(COLOURS)]}' dashtype {dash} {title}")


def panel_text(panel, number):
    blocks, lines = [], []
    for i, curve in enumerate(panel.curves):
        data = f"$d{number}_{i}"
        blocks.append(f"{data} << EOD\n" + "\n".join(f"{x} {y}" for x, y in curve.points) + "\nEOD\n")
        lines.append(curve_text(curve, data))
    text = "".join(blocks) + "unset logscale\nset xtics auto\n"
    if "x" in panel.logarithmic:
        text += "set logscale x 2\n"
    if "y" in panel.logarithmic:
        text += "set logscale y 10\nset mytics 10\n"
    if panel.ticks:
        text += "set xtics (" + ", ".join(f"'{tick:,}' {tick}" for tick in panel.ticks) + ") rotate by -40\n"
        text += f"set xrange [{panel.ticks[0] / 1.1}:{panel.ticks[-1] * 1.1}]\n"
    return text + (f"set title {in_quotes(panel.title)} noenhanced\nset xlabel {in_quotes(panel.x)} noenhanced\n"
                   f"set ylabel {in_quotes(panel.y)} noenhanced\nset yrange {panel.y_range}\nplot "
                   + ", ".join(lines) + "\n")


def draw(path, *panels):
    """Draws the panels side by side. Returns False and draws nothing if gnuplot is not installed."""
    if not shutil.which("gnuplot"):
        return False
    path = pathlib.Path(path)
    longest = max(len(NAMES.get(curve.label, curve.label)) for panel in panels for curve in panel.curves)
    script = (f"set terminal svg size {(650 + 7 * longest) * len(panels)},600 background 'white'\n"
              f"set output {in_quotes(path.name)}\nset border 31\n"
              "set grid xtics ytics mytics linecolor rgb '#909090' linewidth 0.7, linecolor rgb '#d8d8d8' linewidth 0.7\n"
              "set key outside right top\n")
    if len(panels) > 1:
        script += f"set multiplot layout 1,{len(panels)}\n"
    script += "".join(panel_text(panel, number) for number, panel in enumerate(panels))
    done = subprocess.run(["gnuplot"], input=script, text=True, cwd=path.parent, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise RuntimeError(f"gnuplot: {path}: status {done.returncode}\n{done.stderr}")
    return True


def save(path, *panels):
    """draw(), and the curves in FILE_curves.json beside it: the raw numbers of pictures whose table has fewer."""
    path = pathlib.Path(path)
    parts = []
    for panel in panels:
        head = {key: value for key, value in dataclasses.asdict(panel).items() if key != "curves"}
        curves = ",\n    ".join(json.dumps(dataclasses.asdict(curve)) for curve in panel.curves)
        parts.append(json.dumps(head).removesuffix("}") + ', "curves": [\n    ' + curves + "\n  ]}")
    text = '{"panels": [\n  ' + ",\n  ".join(parts) + "\n]}\n"
    path.with_name(f"{path.stem}_curves.json").write_text(text, encoding="utf-8")
    return draw(path, *panels)


def draw_again(path):
    """Draws the picture of a file that save() has written."""
    path = pathlib.Path(path)
    panels = [Panel(**{**panel, "curves": [Curve(**curve) for curve in panel["curves"]]})
              for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]]
    return draw(path.with_name(path.stem.removesuffix("_curves") + ".svg"), *panels)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not all(path.endswith("_curves.json") for path in sys.argv[1:]):
        sys.exit("usage: bench/picture.py FILE_curves.json…")
    if not all([draw_again(path) for path in sys.argv[1:]]):
        sys.exit("picture: gnuplot is not installed")
