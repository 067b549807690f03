"""Draws pictures (SVG) of measurements in one style, with the code that draws the program's own pictures.

Each picture has a grid, axis titles with quantity and unit, and a title that states what was measured. Each compared
program or method has its colour and each variant of it (for example a number type) its dash; the project's own program
is bold. Needs build/cpu/bench_picture (./run build cpu bench_picture).

    bench/picture.py FILE_curves.json…    draws FILE.svg again from the curves that save() has kept
"""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/cpu/bench_picture"
COLOURS = 10  # that are distinct for all kinds of colour vision; black is the first
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
    colour: int = 0  # below COLOURS
    dash: int = 0  # 0: solid; 1 to 3
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
    ticks: tuple = ()  # tick positions of x; (): round numbers
    from_zero: bool = False  # the y axis begins at 0


def seed_curves(runs):
    """One curve per seed; all seeds of a method have the same colour. runs: {method: [points of a seed, …]}"""
    return [Curve(points, method if first == 0 else "", colour % COLOURS, colour // COLOURS, marks=False)
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


def drawn_json(panels):
    """What bench_picture reads: numbers instead of the texts of a CSV file, labels as readers see them."""
    panels = [dataclasses.asdict(panel) for panel in panels]
    for curve in [curve for panel in panels for curve in panel["curves"]]:
        curve["points"] = [(float(x), float(y)) for x, y in curve["points"]]
        curve["label"] = NAMES.get(curve["label"], curve["label"])
    return json.dumps({"panels": panels})


def draw(path, *panels):
    """Draws the panels side by side. Returns False and draws nothing if the program that draws is not built."""
    if not PROGRAM.exists():
        print(f"{path} is not drawn: ./run build cpu bench_picture", file=sys.stderr)
        return False
    done = subprocess.run([PROGRAM], input=drawn_json(panels), text=True, stdout=subprocess.PIPE, check=True)
    temporary = pathlib.Path(f"{path}.tmp")
    temporary.write_text(done.stdout, encoding="utf-8")
    os.replace(temporary, path)
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
        sys.exit(1)
