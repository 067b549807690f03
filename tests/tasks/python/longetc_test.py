#!/usr/bin/env python3
"""Tests of the Python package; needs an interpreter that has it: `./run python`, or ctest in a build with
-DETC_PYTHON=ON.

Models are tiny and random, because these tests cover the conversion of arguments and results. The tests of the library
verify the numbers; one test here compares them with those of PyTorch, where it is installed.
"""
import gc
import importlib.util
import json
import logging
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest

import numpy as np

import longetc

NAMES = ["babren", "dobren", "febren", "gibren", "kabren", "lubren"]
RULERS = ["banix", "donix", "fenix", "ginix", "kanix", "lunix"]
WORDS = ["who", "ruled", "is", "by", "the", "old", "harbour", "quiet", ".", "?", "##s", *NAMES, *RULERS]


def write_vocabulary(folder):
    pieces = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    file = pathlib.Path(folder) / "vocab.txt"
    file.write_text("\n".join(pieces) + "\n")
    return file


def bert(layers=2, hidden=32, vocab=160, positions=128, seed=1):
    """(configuration, state dict) of a random BertModel, with the names of the library `transformers`."""
    random = np.random.default_rng(seed)
    config = {"model_type": "bert", "vocab_size": vocab, "hidden_size": hidden, "num_hidden_layers": layers,
              "num_attention_heads": 2, "intermediate_size": 2 * hidden, "hidden_act": "gelu", "type_vocab_size": 2,
              "max_position_embeddings": positions, "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.0,
              "attention_probs_dropout_prob": 0.0}
    state = {}

    def add(name, *shape):
        state[name] = random.normal(0, 0.2, shape).astype(np.float32)

    add("embeddings.word_embeddings.weight", vocab, hidden)
    add("embeddings.position_embeddings.weight", positions, hidden)
    add("embeddings.token_type_embeddings.weight", 2, hidden)
    norms = ["embeddings.LayerNorm"]
    for i in range(layers):
        layer = f"encoder.layer.{i}."
        shapes = {"attention.self.query": (hidden, hidden), "attention.self.key": (hidden, hidden),
                  "attention.self.value": (hidden, hidden), "attention.output.dense": (hidden, hidden),
                  "intermediate.dense": (2 * hidden, hidden), "output.dense": (hidden, 2 * hidden)}
        for name, shape in shapes.items():
            add(layer + name + ".weight", *shape)
            add(layer + name + ".bias", shape[0])
        norms += [layer + "attention.output.LayerNorm", layer + "output.LayerNorm"]
    for name in norms:
        state[name + ".weight"] = np.ones(hidden, np.float32)
        state[name + ".bias"] = np.zeros(hidden, np.float32)
    return config, state


def records(count, seed):
    """Generated HotpotQA records with questions such as "Who ruled X?"."""
    random = np.random.default_rng(seed)
    made = []
    for i in range(count):
        names, rulers = random.permutation(NAMES)[:3], random.permutation(RULERS)[:3]
        context = [[str(n).title(), [f"{str(n).title()} is ruled by {str(r).title()}."]] for n, r in zip(names, rulers)]
        made.append({"_id": f"r{i}", "question": f"Who ruled {str(names[0]).title()}?", "answer": str(rulers[0]).title(),
                     "context": context, "supporting_facts": [[str(names[0]).title(), 0]], "type": "bridge",
                     "level": "hard"})
    return made


def slow_encoder():
    """An encoder, and ids whose encoding takes seconds."""
    config, state = bert(layers=48, hidden=64, positions=2048)
    return longetc.from_weights(state, config, family="bert"), np.arange(2000, dtype=np.int32) % 160


def setUpModule():
    # A shell that starts this script in the background makes it ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Scene(unittest.TestCase):
    """Fixture: a vocabulary and a HotpotQA run, made with the package itself."""

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.kept.name)
        cls.vocabulary = write_vocabulary(cls.folder)
        for split, seed in (("train", 1), ("dev", 2)):
            (cls.folder / f"{split}.json").write_text(json.dumps(records(8, seed)))
            cls.report = longetc.prepare("hotpotqa", cls.folder / f"{split}.json", cls.folder / f"{split}.h5",
                                         vocabulary=cls.vocabulary, split=split)
        cls.config = {
            "model": {"vocab_size": 200, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
                      "intermediate_size": 32, "local_radius": 8, "relative_pos_max_distance": 8,
                      "relative_vocab_size": 20, "use_residual_attention": True},
            "task": {"name": "hotpotqa"},
            "data": {"train": [str(cls.folder / "train.h5")], "eval": [str(cls.folder / "dev.h5")],
                     "vocab": str(cls.vocabulary)},
            "training": {"batch_size": 4, "epochs": 2.0, "learning_rate": 0.001, "eval_every": 2, "save_every": 2}}
        cls.told = []
        cls.trained = longetc.train(cls.config, cls.folder / "run", progress=cls.told.append)

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()


class Runs(Scene):
    def test_records_are_prepared_and_counted(self):
        self.assertEqual((self.report.records, self.report.examples, self.report.rejected), (8, 8, 0))
        self.assertTrue(self.report.complete)
        self.assertIn("8", self.report.summary)

    def test_training_reports_every_step_and_the_best_metrics(self):
        self.assertEqual(self.trained.step, 4)
        self.assertIn("joint_f1", self.trained.best)
        self.assertTrue((self.folder / "run" / "best" / "model.safetensors").exists())
        steps = [report.done for report in self.told if report.what == "train"]
        self.assertEqual(sorted(set(steps) & {1, 2, 3, 4}), [1, 2, 3, 4])

    def test_a_run_stopped_by_its_progress_function_goes_on_to_the_same_weights(self):
        output = self.folder / "stopped"
        with self.assertRaises(longetc.Interrupted):
            longetc.train(self.config, output, progress=lambda report: report.done < 2 or report.what != "train")
        self.assertEqual(longetc.train(output=output, progress=False).step, 4)
        name = "best/model.safetensors"
        self.assertEqual((output / name).read_bytes(), (self.folder / "run" / name).read_bytes())

    def test_what_a_progress_function_raises_ends_the_run(self):
        def progress(report):
            raise ZeroDivisionError("mine")
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            longetc.train(self.config, self.folder / "raised", progress=progress)

    def test_ctrl_c_ends_a_run_with_everything_saved(self):
        output = self.folder / "killed"
        config = json.loads(json.dumps(self.config))
        config["training"].update(epochs=100000.0, save_every=100000, eval_every=100000)
        before = signal.getsignal(signal.SIGINT)
        sent = []

        def send(report):
            if report.what == "train" and report.done >= 3 and not sent:
                sent.append(True)
                os.kill(os.getpid(), signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt) as stopped:
            longetc.train(config, output, progress=send)
        self.assertIsInstance(stopped.exception, longetc.Interrupted)
        self.assertTrue((output / "last" / "state.safetensors").exists())
        self.assertEqual(signal.getsignal(signal.SIGINT), before)
        with self.assertRaises(KeyboardInterrupt):  # Python's signal handler is restored
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)

    def test_configurations_that_cannot_be_meant_are_refused(self):
        wrong = {**self.config, "training": {"lerning_rate": 1}}
        with self.assertRaisesRegex(longetc.UsageError, "learning_rate"):
            longetc.train(wrong, self.folder / "wrong")
        with self.assertRaises(ValueError):
            longetc.train(self.config)

    def test_a_configuration_is_a_mapping_of_any_kind(self):
        config = types.MappingProxyType({**self.config, "training": types.MappingProxyType(self.config["training"])})
        output = self.folder / "mapping"
        self.assertEqual(longetc.train(config, output, progress=False).step, 4)
        name = "best/model.safetensors"
        self.assertEqual((output / name).read_bytes(), (self.folder / "run" / name).read_bytes())

    def test_one_target_is_one_file(self):
        with self.assertRaisesRegex(longetc.UsageError, "targets: expected none in this task, got 1"):
            longetc.prepare("hotpotqa", self.folder / "dev.json", self.folder / "x.h5", vocabulary=self.vocabulary,
                            targets="de")

    def test_messages_go_to_logging(self):
        with self.assertLogs("longetc", logging.INFO) as caught:
            longetc.train(self.config, self.folder / "logged", progress=False)
        self.assertTrue(any("finished at step 4" in line for line in caught.output), caught.output)


class Answers(Scene):
    def setUp(self):
        self.model = longetc.load(self.folder / "run")

    def test_a_model_says_what_it_is(self):
        self.assertEqual(self.model.task, "hotpotqa")
        self.assertEqual(self.model.config["model"]["hidden_size"], 16)
        self.assertEqual(len(self.model.tokenizer), 104 + len(WORDS))
        self.assertEqual(repr(self.model), "Model(hotpotqa)")

    def test_records_are_answered(self):
        record = records(1, 3)[0]
        answer = self.model.predict(record)
        self.assertEqual(answer["id"], "r0")
        self.assertIn(answer["answer_type"], ("span", "yes", "no"))
        with self.assertRaisesRegex(longetc.Error, "question"):
            self.model.predict({"_id": "x", "context": record["context"]})

    def test_questions_about_a_document_are_answered_with_places_in_it(self):
        document = "# Kabren\n\nKabren is ruled by *Ginix*. The old harbour is quiet.\n"
        model = longetc.load(self.folder / "run", decoding={"sf_threshold": 0.0})
        answer = model.ask(document.encode(), "Who ruled Kabren?", form="markdown")
        self.assertEqual(len(answer["evidence"]), 2)
        place = answer["evidence"][0]
        self.assertEqual(document[place["start"]:place["end"]], "Kabren is ruled by *Ginix*.")
        with self.assertRaisesRegex(longetc.UsageError, "openkp"):
            model.keyphrases(document)
        with self.assertRaisesRegex(longetc.UsageError, "form"):
            model.ask(document, "Who?", form="pdf")
        with self.assertRaises(longetc.Error):
            model.ask(b"\xff\xfe\x00", "Who?")

    def test_texts_are_encoded_by_tokens_by_sentences_and_as_one_vector(self):
        texts = ["Kabren is ruled by Ginix. The harbour is quiet.", "Who ruled?"]
        long = self.model.encode(texts)
        self.assertEqual(long.states.dtype, np.float32)
        self.assertEqual(long.states.shape, (long.offsets[-1], 16))
        self.assertEqual([len(rows) for rows in long], [len(ids) for ids in long.ids])
        self.assertEqual(list(long.cut), [0, 0])
        self.assertEqual(len(self.model.encode(texts, states="global")[0]), 2)
        mean = self.model.encode(texts, states="mean")
        self.assertEqual(mean.states.shape, (2, 16))
        of_sentences = long[0][long.sentences[0] >= 0]
        np.testing.assert_allclose(mean.states[0], of_sentences.mean(axis=0), atol=1e-6)
        for i, text in enumerate(texts):
            self.assertTrue(np.array_equal(self.model.encode(text).states, long[i]))
        again = self.model.encode(ids=long.ids, sentences=long.sentences)
        self.assertTrue(np.array_equal(again.states, long.states))
        told = []
        self.model.encode(texts, progress=told.append)
        self.assertEqual([report.done for report in told], [0, 1])

    def test_a_folder_without_a_model_is_named(self):
        with self.assertRaisesRegex(longetc.Error, "nowhere"):
            longetc.load(self.folder / "nowhere")
        with self.assertRaisesRegex(longetc.Error, "expected int32 or fp16, got \"fp8\""):
            longetc.load(self.folder / "run", scores="fp8").encode(["a"])


class Arrays(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config, state = bert()
        cls.encoder = longetc.from_weights(state, config, family="bert")
        cls.ids = np.arange(5, 55, dtype=np.int32)

    def test_states_are_not_copied_and_outlive_what_made_them(self):
        encoded = self.encoder.encode(ids=self.ids)
        first, address, expected = encoded[0], encoded.states.ctypes.data, encoded.states.copy()
        self.assertFalse(encoded.states.flags.owndata)
        self.assertEqual(first.ctypes.data, address)
        self.assertTrue(encoded.states.flags.writeable)
        del encoded
        gc.collect()
        self.encoder.encode(ids=self.ids[::-1])
        self.assertTrue(np.array_equal(first, expected))

    def test_ids_are_taken_in_every_form(self):
        expected = self.encoder.encode(ids=self.ids).states
        flat = np.concatenate([self.ids, self.ids[:7]])
        forms = {"int64": dict(ids=flat.astype(np.int64), offsets=[0, 50, 57]), "lists": dict(ids=[self.ids, self.ids[:7]]),
                 "python": dict(ids=[self.ids.tolist(), self.ids[:7].tolist()]),
                 "tuples": dict(ids=(tuple(self.ids.tolist()), self.ids[:7])),
                 "ragged": dict(ids=longetc.Ragged(flat, np.array([0, 50, 57]))),
                 "strided": dict(ids=np.repeat(flat, 2)[::2], offsets=np.array([0, 50, 57], np.int32))}
        for name, form in forms.items():
            with self.subTest(name):
                encoded = self.encoder.encode(**form)
                self.assertTrue(np.array_equal(encoded[0], expected))
                self.assertEqual(len(encoded[1]), 7)
                self.assertEqual(len(encoded), 2)
        with self.assertRaises(IndexError):
            self.encoder.encode(ids=self.ids)[1]

    def test_arrays_that_cannot_be_meant_are_refused(self):
        wrong = {"of 2 dimensions": dict(ids=np.zeros((2, 2), np.int32)[None]), "expected integers": dict(ids=[0.5, 1]),
                 "32 bits": dict(ids=[1, 1 << 40]), "offsets": dict(ids=self.ids, offsets=[0, 60]),
                 "one for each id": dict(ids=self.ids, sentences=[0]), "either texts or ids": dict(),
                 "expected one of": dict(ids=self.ids, states="short"), "not with texts": dict(texts="a", offsets=[0, 1])}
        for message, arguments in wrong.items():
            with self.subTest(message):
                message = "dimensions" if "dimensions" in message else message
                with self.assertRaisesRegex(longetc.UsageError, message):
                    self.encoder.encode(**arguments)
        flat = longetc.Ragged(self.ids, np.array([0, 50]))
        unlike = {"got 5": dict(ids=5), "an array of 0 dimensions": dict(ids=[[1, 2], 3]),
                  "ids: expected .*integers": dict(ids=[3, [1, 2]]), "got ndarray": dict(ids=np.array(3)),
                  "got generator": dict(ids=(i for i in range(3))), "got set": dict(ids={1, 2}),
                  "got dict": dict(ids={1: 2}), "expected none beside ids": dict(ids=flat, offsets=[0, 50]),
                  "sentences: .* got 0": dict(ids=self.ids, sentences=0),
                  "offsets: .* 0 dimensions": dict(ids=self.ids, offsets=5)}
        for message, arguments in unlike.items():
            with self.subTest(message), self.assertRaisesRegex(longetc.UsageError, message):
                self.encoder.encode(**arguments)
        with self.assertRaisesRegex(longetc.Error, "160"):
            self.encoder.encode(ids=[5, 160])
        with self.assertRaisesRegex(longetc.Error, "vocabulary"):
            self.encoder.encode("A text.")

    def test_numbers_of_threads_change_no_bit(self):
        before = longetc.threads()
        states = []
        try:
            for count in (1, 2, 4):
                longetc.set_threads(count)
                self.assertEqual(longetc.threads(), count)
                states.append(self.encoder.encode(ids=self.ids).states)
            longetc.set_threads(0)
            self.assertGreaterEqual(longetc.threads(), 1)
            with self.assertRaises(longetc.UsageError):
                longetc.set_threads(-1)
        finally:
            longetc.set_threads(before)
        self.assertTrue(np.array_equal(states[0], states[1]) and np.array_equal(states[0], states[2]))

    def test_weights_are_checked_by_name_and_shape(self):
        config, state = bert()
        del state["encoder.layer.1.output.dense.weight"]
        with self.assertRaisesRegex(longetc.Error, "layer_1/output/dense"):
            longetc.from_weights(state, config, family="bert")
        with self.assertRaisesRegex(TypeError, "a tensor"):
            longetc.from_weights({"a tensor": "text"}, config, family="bert")
        with self.assertRaisesRegex(longetc.UsageError, "family"):
            longetc.from_weights({}, config, family="gpt")

    def test_half_precision_weights_are_widened(self):
        config, state = bert()
        half = {name: values.astype(np.float16) for name, values in state.items()}
        widened = {name: values.astype(np.float32) for name, values in half.items()}
        states = [longetc.from_weights(s, config, family="bert").encode(ids=self.ids).states for s in (half, widened)]
        self.assertTrue(np.array_equal(*states))

    def test_small_numbers_stay_what_they_are_after_a_call(self):
        self.encoder.encode(ids=self.ids)
        self.assertGreater(float(np.float32(1e-40) * np.float32(1.0)), 0.0)
        self.assertGreater(np.full(8, 1e-40, np.float32).sum(), 0.0)


class Tokenizers(unittest.TestCase):
    def test_texts_become_ids_and_text_again(self):
        with tempfile.TemporaryDirectory() as folder:
            tokenizer = longetc.Tokenizer(write_vocabulary(folder))
            tokens = tokenizer.encode(["The harbours", "", "Who?"])
            self.assertEqual(tokens.values.dtype, np.int32)
            self.assertEqual([len(ids) for ids in tokens], [3, 0, 2])
            self.assertEqual([tokenizer.piece(int(i)) for i in tokens[0]], ["the", "harbour", "##s"])
            self.assertEqual(tokenizer.decode(tokens[0]), "the harbours")
            self.assertEqual(tokenizer.id_of("[CLS]"), 101)
            self.assertEqual((tokenizer.kind, len(tokenizer.sha256)), ("wordpiece", 64))
            with self.assertRaisesRegex(longetc.Error, "nothing"):
                tokenizer.id_of("nothing")
            with self.assertRaises(longetc.Error):
                longetc.Tokenizer(pathlib.Path(folder) / "none.txt")


class LongCalls(unittest.TestCase):
    """Signals, other threads and forked processes during a call that takes seconds."""

    @classmethod
    def setUpClass(cls):
        cls.encoder, cls.ids = slow_encoder()
        cls.expected = cls.encoder.encode(ids=cls.ids[:100]).states

    def interrupted(self, number, after=0.3):
        timer = threading.Timer(after, os.kill, (os.getpid(), number))
        timer.start()
        begin = time.monotonic()
        try:
            self.encoder.encode(ids=[self.ids] * 20)
        finally:
            timer.join()
            self.seconds = time.monotonic() - begin - after

    def test_ctrl_c_ends_a_call_between_two_layers(self):
        with self.assertRaises(KeyboardInterrupt):
            self.interrupted(signal.SIGINT)
        self.assertLess(self.seconds, 2.0)
        self.assertTrue(np.array_equal(self.encoder.encode(ids=self.ids[:100]).states, self.expected))

    def test_handlers_of_other_signals_run_and_what_they_raise_comes_through(self):
        def handler(number, frame):
            raise OverflowError("from the handler")
        before = signal.signal(signal.SIGUSR1, handler)
        try:
            with self.assertRaisesRegex(OverflowError, "from the handler"):
                self.interrupted(signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, before)

    def test_other_threads_run_meanwhile(self):
        done, counted = threading.Event(), [0]

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.001)
        thread = threading.Thread(target=count)
        thread.start()
        self.encoder.encode(ids=self.ids)
        at_the_end = counted[0]
        done.set()
        thread.join()
        self.assertGreater(at_the_end, 20)

    def test_a_process_forked_in_between_computes_the_same(self):
        def in_child():
            return np.array_equal(self.encoder.encode(ids=self.ids[:100]).states, self.expected)
        self.assertEqual(exit_code_of(in_child), 0)

    def test_a_process_forked_during_a_call_is_told_so(self):
        def in_child():
            try:
                self.encoder.encode(ids=self.ids[:100])
            except longetc.Error as error:
                return "forked" in str(error)
        amid = threading.Event()  # set when the first of the 20 texts is done

        def progress(report):
            if report.done >= 1:
                amid.set()
        thread = threading.Thread(target=lambda: self.encoder.encode(ids=[self.ids] * 20, progress=progress))
        thread.start()
        self.assertTrue(amid.wait(timeout=60))
        self.assertTrue(thread.is_alive())
        code = exit_code_of(in_child)
        thread.join()
        self.assertEqual(code, 0)

    def test_calls_from_within_a_call_are_refused(self):
        for name, call in {"threads": lambda report: longetc.set_threads(1),
                           "the same": lambda report: self.encoder.encode(ids=self.ids[:10])}.items():
            with self.subTest(name), self.assertRaisesRegex(longetc.UsageError, "no call from a progress function"):
                self.encoder.encode(ids=self.ids[:10], progress=call)


def exit_code_of(work):
    """Exit code of a forked process that runs work(): 0 if the result is true, otherwise 1."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Package(unittest.TestCase):
    def test_the_stub_names_what_the_module_has(self):
        stub = pathlib.Path(longetc.__file__).parent / "_longetc.pyi"
        self.assertTrue((stub.parent / "py.typed").exists())
        declared = set(re.findall(r"^(?:class|def) (\w+)", stub.read_text(), re.M))
        there = {name for name in dir(longetc._longetc) if not name.startswith("__")}
        self.assertEqual(declared, there)
        members = re.findall(r"^class (\w+).*?:\n((?:    .*\n|\n)*)", stub.read_text(), re.M)
        for name, body in members:
            for member in re.findall(r"^    (?:def )?(\w+)[(:]", body, re.M):
                self.assertTrue(hasattr(getattr(longetc._longetc, name), member), f"{name}.{member}")

    def test_one_symbol_is_seen_from_outside(self):
        try:
            listed = subprocess.run(["nm", "-D", "--defined-only", longetc._longetc.__file__], capture_output=True,
                                    text=True, check=True).stdout
        except FileNotFoundError:
            self.skipTest("no nm")
        self.assertEqual([line.split()[-1] for line in listed.splitlines()], ["PyInit__longetc"])

    def test_nothing_is_printed(self):
        code = (f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
                "import longetc_test as test\n"
                "config, state = test.bert()\n"
                "kept = test.longetc.from_weights(state, config, family='bert')\n"
                "states = kept.encode(ids=[5, 6]).states\n"
                "try: test.longetc.load('nowhere')\nexcept test.longetc.Error: pass\n")
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual((run.stdout, run.stderr), ("", ""))


BESIDE = """
import sys
{imports}
sys.path.insert(0, {folder!r})
import longetc_test as test
config, state = test.bert(layers=3, hidden=64)
model = transformers.BertModel(transformers.BertConfig(**config), add_pooling_layer=False).eval()
model.load_state_dict({{k: torch.from_numpy(v) for k, v in state.items()}}, strict=False)
ids = torch.arange(100) % 160
ours = longetc.from_weights(model.state_dict(), config, family="bert")
torch.set_num_threads(2)
for _ in range(3):
    with torch.no_grad():
        theirs = model(input_ids=ids[None]).last_hidden_state[0]
    states = ours.encode(ids=ids).states
    (torch.ones(300, 300) @ torch.ones(300, 300)).sum()
difference = float((torch.from_numpy(states) - theirs).abs().max())
assert torch.get_num_threads() == 2
bf16 = {{k: v.to(torch.bfloat16) for k, v in model.state_dict().items()}}
longetc.from_weights(bf16, config, family="bert").encode(ids=ids)
print(difference)
"""


@unittest.skipUnless(importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"), "no PyTorch")
class BesidePyTorch(unittest.TestCase):
    def check(self, imports):
        code = BESIDE.format(imports=imports, folder=str(pathlib.Path(__file__).parent))
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertLess(float(run.stdout), 1e-5)

    def test_a_state_dict_computes_what_pytorch_computes_imported_after_it(self):
        self.check("import torch, transformers\nimport longetc")

    def test_a_state_dict_computes_what_pytorch_computes_imported_before_it(self):
        self.check("import longetc\nimport torch, transformers")


if __name__ == "__main__":
    unittest.main()
