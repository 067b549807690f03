"""Encoders with global-local sparse attention for long documents, and models for tasks on them.

    model = longetc.load("run")
    states = model.encode(["A text.", "Another one."], states="mean").states     # [2, H], float32
    answer = model.ask(open("report.md").read(), "Who wrote the report?")

The classes and functions correspond to the commands of the program `etc`. Their results are bitwise equal to those of
the program, and its error messages are raised as exceptions. See tasks/python/README.md for an introduction.
"""
import atexit
import json
import logging
import os
import sys
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from . import _longetc
from ._longetc import Error, Interrupted, PrepareReport, ProgressReport, UsageError, set_threads, threads

__version__ = _longetc.version()
__all__ = ["Encoded", "Error", "Interrupted", "Model", "PrepareReport", "ProgressReport", "Ragged", "Tokenizer",
           "TrainReport", "UsageError", "from_weights", "load", "prepare", "set_threads", "threads", "train"]

Path = Union[str, "os.PathLike[str]"]
Progress = Union[bool, None, Callable[[ProgressReport], Any]]

_logger = logging.getLogger("longetc")


def _log(warning: bool, message: str) -> None:
    _logger.log(logging.WARNING if warning else logging.INFO, "%s", message)


_longetc.set_log(_log)
atexit.register(_longetc.set_log, None)


# ---- Rows of several texts, concatenated. ----

class Ragged:
    """Concatenated values of several texts: text i has values[offsets[i]:offsets[i + 1]]. Items are views, not
    copies."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        if not -len(self) <= i < len(self):
            raise IndexError(f"text {i} of {len(self)}")
        i %= len(self)
        return self.values[self.offsets[i]:self.offsets[i + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Ragged({len(self)} texts, {len(self.values)} rows)"


class Encoded(Ragged):
    """States of texts.

    states (alias of values): float32 [rows, H].
    offsets: int64 [texts + 1]; text i has the rows offsets[i] to offsets[i + 1].
    ids: the tokens that the model read, special tokens included.
    sentences: the sentence number of each of these tokens, -1 for special tokens.
    read, cut: for each text the number of tokens that the model read, and that were truncated.
    """

    def __init__(self, arrays: Tuple[np.ndarray, ...]) -> None:
        states, offsets, ids, id_offsets, sentences, read, cut = arrays
        super().__init__(states, offsets)
        self.ids = Ragged(ids, id_offsets)
        self.sentences = Ragged(sentences, id_offsets)
        self.read = read
        self.cut = cut

    @property
    def states(self) -> np.ndarray:
        return self.values

    def __repr__(self) -> str:
        return f"Encoded({len(self)} texts, {self.values.shape[0]} rows of {self.values.shape[1]})"


def _integers(values: Any, kind: type, name: str) -> np.ndarray:
    """The numbers as a contiguous vector of type `kind`; an array that already is one is not copied."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: expected a vector of integers: {error}") from None
    if array.ndim != 1:
        raise UsageError(f"{name}: expected a vector, got an array of {array.ndim} dimensions")
    if array.dtype != kind:
        if array.size and array.dtype.kind not in "iu":
            raise UsageError(f"{name}: expected integers, got {array.dtype}")
        limits = np.iinfo(kind)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise UsageError(f"{name}: expected numbers of {limits.bits} bits, got {array.min()} to {array.max()}")
    return np.ascontiguousarray(array, dtype=kind)


def _holds_vectors(values: Any, name: str) -> bool:
    try:
        return len(values) > 0 and np.ndim(values[0]) > 0
    except (KeyError, TypeError, ValueError):  # a number, an iterator, a mapping, or vectors of different shapes
        raise UsageError(f"{name}: expected a vector of integers, a list of such vectors or a Ragged, got "
                         f"{values if np.isscalar(values) else type(values).__name__}") from None


def _ragged(ids: Any, offsets: Any, name: str) -> Tuple[np.ndarray, np.ndarray]:
    if isinstance(ids, Ragged):
        if offsets is not None:
            raise UsageError(f"offsets: expected none beside {name} of several texts, which have their own")
        ids, offsets = ids.values, ids.offsets
    elif offsets is None and _holds_vectors(ids, name):
        texts = [_integers(text, np.int32, name) for text in ids]
        offsets = np.cumsum([0] + [len(text) for text in texts])
        ids = np.concatenate(texts)
    flat = _integers(ids, np.int32, name)
    starts = _integers([0, len(flat)] if offsets is None else offsets, np.int64, "offsets")
    if len(starts) < 1 or starts[0] != 0 or starts[-1] != len(flat) or np.any(np.diff(starts) < 0):
        raise UsageError(f"offsets: expected from 0 to {len(flat)}, the number of ids, never less than the one before")
    return flat, starts


def _files(files: Union[Path, Sequence[Path]]) -> List[str]:
    return [os.fspath(files)] if isinstance(files, (str, os.PathLike)) else [os.fspath(file) for file in files]


def _json(value: Any) -> str:
    """JSON of a value; mappings of any type, also nested ones, are written as objects."""
    def plain(inner: Any) -> Dict[Any, Any]:
        if isinstance(inner, Mapping):
            return dict(inner)
        raise TypeError(f"expected what JSON can say, got {type(inner).__name__}")
    return json.dumps(value, default=plain)


def _texts(texts: Union[str, Sequence[str]]) -> List[str]:
    return [texts] if isinstance(texts, str) else list(texts)


# ---- Progress. ----

class _Bar:
    """Shows progress on stderr: one line that is updated in place on a terminal, otherwise a new line every ten
    seconds."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._shown = 0.0
        self._open = False

    def __call__(self, report: ProgressReport) -> None:
        now = time.monotonic()
        done = report.total > 0 and report.done >= report.total
        if now - self._shown < (0.1 if self._terminal else 10) and not done:
            return
        self._shown = now
        total = f"/{report.total}" if report.total > 0 else ""
        line = f"{report.what} {report.done}{total} {report.unit}" + (f", {report.note}" if report.note else "")
        sys.stderr.write(f"\r\033[K{line}" if self._terminal else f"{line}\n")
        self._open = self._terminal
        sys.stderr.flush()

    def close(self) -> None:
        if self._open:
            sys.stderr.write("\n")


_Result = TypeVar("_Result")


def _with_progress(progress: Progress, call: Callable[[Any], _Result]) -> _Result:
    if progress is not True:
        return call(progress or None)
    bar = _Bar()
    try:
        return call(bar)
    finally:
        bar.close()


# ---- Vocabularies and models. ----

class Tokenizer:
    """A tokeniser with its vocabulary.

    The file name determines the kind: "*.model" is SentencePiece; "*.json" is byte-level BPE with merges.txt in the
    same folder; "*.bpe" and "*.words" are vocabularies of translation models; "*.chars" has characters; all other files
    are WordPiece. lower_case applies only to WordPiece.
    """

    def __init__(self, vocabulary: Path, lower_case: bool = True) -> None:
        self._own = _longetc.Tokenizer(os.fspath(vocabulary), lower_case)

    @classmethod
    def _of(cls, own: _longetc.Tokenizer) -> "Tokenizer":
        tokenizer = cls.__new__(cls)
        tokenizer._own = own
        return tokenizer

    def encode(self, texts: Union[str, Sequence[str]]) -> Ragged:
        """Ids of the pieces of each text, without special tokens."""
        return Ragged(*self._own.encode(_texts(texts)))

    def decode(self, ids: Any) -> str:
        """The text that the pieces spell. A WordPiece vocabulary gives a blank before every piece but those with "##"."""
        return self._own.decode(_integers(ids, np.int32, "ids"))

    def piece(self, id: int) -> str:
        return self._own.piece(id)

    def id_of(self, piece: str) -> int:
        return self._own.id_of(piece)

    def __len__(self) -> int:
        return self._own.size

    @property
    def kind(self) -> str:
        return self._own.kind

    @property
    def sha256(self) -> str:
        return self._own.sha256


class Model:
    """A model in memory, made by load() or from_weights(). Threads may share it: concurrent calls run one after
    another."""

    def __init__(self, own: _longetc.Model) -> None:
        self._own = own

    @property
    def task(self) -> str:
        """Name of the task, such as "hotpotqa"; "" for an encoder without a task."""
        return self._own.task

    @property
    def config(self) -> Dict[str, Any]:
        return _object(self._own.config)

    @property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer._of(self._own.tokenizer)

    def encode(self, texts: Union[str, Sequence[str], None] = None, *, ids: Any = None, offsets: Any = None,
               sentences: Any = None, states: str = "long", progress: Progress = None) -> Encoded:
        """Computes the states of texts or of token ids.

        texts: one text or a sequence of texts.
        ids, offsets: token ids as the model reads them: a vector, a list of vectors, a Ragged, or a flat vector with
        offsets. int32 ids and int64 offsets are not copied.
        sentences: for each id the number of its sentence within its text, -1 for special tokens.
        states: "long" (one row per token), "global" (one row per sentence) or "mean" (one row per text).
        progress: True shows the progress on stderr; a function is called with a ProgressReport.
        """
        wanted = _one_of(_longetc.States, states, "states")
        if (texts is None) == (ids is None):
            raise UsageError("encode: expected either texts or ids")
        if texts is not None:
            if offsets is not None or sentences is not None:
                raise UsageError("encode: offsets and sentences go with ids, not with texts")
            given = _texts(texts)
            return Encoded(_with_progress(progress, lambda tell: self._own.encode_texts(given, wanted, tell)))
        flat, starts = _ragged(ids, offsets, "ids")
        numbers = None if sentences is None else _ragged(sentences, None, "sentences")[0]
        if numbers is not None and len(numbers) != len(flat):
            raise UsageError(f"sentences: expected {len(flat)} numbers, one for each id, got {len(numbers)}")
        return Encoded(_with_progress(
            progress, lambda tell: self._own.encode_ids(flat, starts, numbers, wanted, tell)))

    def predict(self, record: Mapping[str, Any]) -> Dict[str, Any]:
        """Returns the answer to one raw record of the model's task (tasks/RECORDS.md, tasks/ANSWERS.md)."""
        return _object(self._own.predict(_json(record)))

    def ask(self, document: Union[str, bytes], question: str, form: str = "automatic") -> Dict[str, Any]:
        """Answers a question about a document and returns the answer with its evidence. Only for models of hotpotqa, nq
        and squad. form: the format of the document, "plain", "markdown", "html", or "automatic". Positions in the
        answer are character offsets in the document."""
        return _object(self._own.ask(_text(document), question, _one_of(_longetc.DocumentForm, form, "form")))

    def keyphrases(self, document: Union[str, bytes], form: str = "automatic") -> Dict[str, Any]:
        """Returns the key phrases of a document. Only for models of openkp."""
        return _object(self._own.keyphrases(_text(document), _one_of(_longetc.DocumentForm, form, "form")))

    def __repr__(self) -> str:
        return f"Model({self.task or 'encoder'})"


def _object(text: str) -> Dict[str, Any]:
    made: Dict[str, Any] = json.loads(text)
    return made


def _one_of(choices: Any, name: str, what: str) -> Any:
    if name not in choices.__members__:
        raise UsageError(f"{what}: expected one of {', '.join(choices.__members__)}, got {name!r}")
    return choices[name]


def _text(document: Union[str, bytes]) -> str:
    try:
        return document.decode() if isinstance(document, bytes) else document
    except UnicodeDecodeError as error:
        raise Error(f"document: expected UTF-8: {error}") from None


def _options(vocabulary: Optional[Path], splitter: Optional[str], decoding: Optional[Mapping[str, Any]], compute: str,
             scores: str, memory_limit: int, max_long_tokens: int) -> _longetc.LoadOptions:
    options = _longetc.LoadOptions()
    options.vocabulary = os.fspath(vocabulary) if vocabulary is not None else ""
    options.splitter = splitter or ""
    options.decoding = _json(decoding or {})
    options.compute = compute
    options.scores = scores
    options.memory_limit = memory_limit
    options.max_long_tokens = max_long_tokens
    return options


def load(folder: Path, *, vocabulary: Optional[Path] = None, splitter: Optional[str] = None,
         decoding: Optional[Mapping[str, Any]] = None, compute: str = "fp32", scores: str = "int32",
         memory_limit: int = 0, max_long_tokens: int = 0) -> Model:
    """Loads a model.

    folder: a model folder, or the folder of a run, whose best checkpoint is loaded.
    vocabulary, splitter: used instead of those stored in the folder; splitter: "punkt:FOLDER".
    decoding: decoding keys of the task, as in the options of `etc predict`.
    compute: "fp32", "bf16", "int8" or "auto".
    scores: "int32", or "fp16", which halves the memory of residual scores.
    memory_limit: limit for the memory of computations in bytes; 0: no limit.
    max_long_tokens: limit for a text passed to encode(), special tokens included; 0: 4096, or the model's limit.
    """
    options = _options(vocabulary, splitter, decoding, compute, scores, memory_limit, max_long_tokens)
    return Model(_longetc.Model(os.fspath(folder), options))


def from_weights(weights: Mapping[str, Any], config: Union[Mapping[str, Any], Path], *, family: str = "etc",
                 vocabulary: Optional[Path] = None, compute: str = "fp32", scores: str = "int32", memory_limit: int = 0,
                 max_long_tokens: int = 0) -> Model:
    """Makes an encoder from weights in memory.

    weights: name → NumPy array or PyTorch tensor, such as a state dict of `transformers`; they are copied.
    config: the config.json of the model, as a mapping or a file.
    family: naming scheme of the weights: "etc" (this project's names), "bert", "roberta", "nezha", "xlnet" or "t5".
    vocabulary: needed only to encode texts.
    Other parameters are those of load().
    """
    options = _options(vocabulary, None, None, compute, scores, memory_limit, max_long_tokens)
    return Model(_longetc.Model.of_weights(dict(weights), family, _json_of(config), options))


def _json_of(config: Union[Mapping[str, Any], Path]) -> str:
    if isinstance(config, Mapping):
        return _json(config)
    with open(config, encoding="utf-8") as file:
        return file.read()


# ---- Data and training. ----

class TrainReport(NamedTuple):
    """step: total number of updates; best: the metrics of the best evaluation, empty without evaluation data."""
    step: int
    best: Dict[str, float]


def prepare(task: str, inputs: Union[Path, Sequence[Path]], output: Path, *, vocabulary: Path, split: str = "train",
            targets: Union[Path, Sequence[Path]] = (), report: Optional[Path] = None, settings: Optional[Mapping[str, Any]] = None,
            strict: bool = False, progress: Progress = None) -> PrepareReport:
    """Converts raw files to one HDF5 data set and a report of faulty records, as `etc prepare` does.
    settings: options of the task, such as {"long_seq_len": 4096}."""
    options = _longetc.PrepareOptions()
    options.task = task
    options.inputs = _files(inputs)
    options.targets = _files(targets)
    options.vocabulary = os.fspath(vocabulary)
    options.output = os.fspath(output)
    options.report = os.fspath(report) if report is not None else ""
    options.split = split
    options.settings = _json(settings or {})
    options.strict = strict
    return _with_progress(progress, lambda tell: _longetc.prepare(options, tell))


def train(config: Union[Mapping[str, Any], Path, None] = None, output: Path = "", *,
          overrides: Optional[Mapping[str, Any]] = None, progress: Progress = True) -> TrainReport:
    """Trains a model, as `etc train` does.

    config: {"model": {…}, "task": {…}, "data": {"train": […]}, "training": {…}}, or a file with this content.
    output: the folder of the run. The same call again, or a call without config, resumes the run.
    overrides: keys that take precedence over those of a configuration file.
    progress: True shows the progress on stderr. A function is called with a ProgressReport after every step; it stops
    the run by returning False or raising.
    On Ctrl-C or such a stop, the state is saved first; then Interrupted (a KeyboardInterrupt) is raised.
    """
    if not output:
        raise UsageError("train: expected output, the run's folder")
    options = _longetc.TrainOptions()
    options.output = os.fspath(output)
    if isinstance(config, Mapping):
        if overrides is not None:
            raise UsageError("train: overrides go with a configuration file: expected them in config")
        options.config = _json(config)
    else:
        options.config_file = os.fspath(config) if config is not None else ""
        options.config = _json(overrides or {})
    report = _with_progress(progress, lambda tell: _longetc.train(options, tell))
    return TrainReport(report.step, dict(report.best))
