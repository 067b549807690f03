// etc convert from the user's point of view: its output, its files, what it refuses, and that nothing is left
// incomplete.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_reader.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/checkpoint/convert/samples.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/numbers.h"
#include "tests/support/python.h"
#include "tests/support/sentencepiece_model.h"
#include "tests/tasks/train/program.h"

using namespace etc;
using Catch::Contains;
using test::Result;
namespace fs = std::filesystem;

namespace {

// Runs the command in a folder of its own, with paths relative to it spelled out by the caller.
struct Convert {
  test::TemporaryFolder folder;

  fs::path operator/(const std::string& name) const { return folder / name; }
  Result operator()(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "convert");
    const Result result = run(arguments);
    return result;
  }
  Result run(const std::vector<std::string>& arguments) const { return test::run_program(arguments, logs_.path()); }

  // Checks that the command is refused with this code and message and creates nothing in the folder.
  void refuses(const std::vector<std::string>& arguments, int code, const std::string& message) const {
    const std::set<fs::path> before = files();
    const Result result = (*this)(arguments);
    INFO(result.out << result.err);
    CHECK(result.code == code);
    CHECK_THAT(result.err, Contains(message));
    CHECK(result.out.empty());
    CHECK(files() == before);
  }
  std::set<fs::path> files() const {
    std::set<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path())) found.insert(entry.path());
    return found;
  }

 private:
  test::TemporaryFolder logs_;
};

Result succeeds(const Result& result) {
  INFO(result.out << result.err);
  REQUIRE(result.code == 0);
  return result;
}

const std::string kHead = "cls/nq/long_output_weights";

// published/model.ckpt and etc_config.json, with a head, slots of one variable, and the number of steps.
test::TfCheckpoint write_published(const Convert& convert, const EtcConfig& config = test::small_etc_config()) {
  test::TfCheckpoint checkpoint(config);
  checkpoint.add();
  checkpoint.writer.add(kHead, Tensor::from({1, 2, 3, 4, 5, 6, 7, 8}, {1, 8}, Purpose::weights));
  const std::string gamma = "etc_document_bert/long_emb_layer_norm/gamma";
  for (const char* slot : {"/adam_m", "/adam_v"}) {
    checkpoint.writer.add(gamma + slot, checkpoint.parameters.at(gamma).value);
  }
  checkpoint.writer.add_i64("global_step", 1234);
  fs::create_directories(convert / "published");
  checkpoint.writer.write(convert / "published/model.ckpt");
  test::write_file(convert / "published/etc_config.json", json_text(config.to_json()));
  return checkpoint;
}

// bert/model.safetensors and config.json.   model: bert or roberta
test::HubBert write_bert(const Convert& convert, const std::string& model = "bert") {
  test::HubBert hub(test::small_bert(), model + ".");
  fs::create_directories(convert / "bert");
  hub.write(convert / "bert/model.safetensors");
  Json config = test::small_bert_json();
  config["model_type"] = model;
  test::write_file(convert / "bert/config.json", json_text(config));
  return hub;
}

}  // namespace

TEST_CASE("etc convert accounts for every tensor of a published checkpoint", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  const test::TfCheckpoint checkpoint = write_published(convert);
  const std::string prefix = convert / "published/model.ckpt", config = convert / "published/etc_config.json";
  const std::size_t tensors = checkpoint.parameters.all().size();

  const Result plain =
      succeeds(convert({"--from", "tf", prefix, "--config", config, "--without-heads", "--output", convert / "model"}));
  CHECK_THAT(plain.out,
             Contains("source: " + prefix + " (TensorFlow ETC checkpoint)") &&
                 Contains(fmt::format("copied: {} tensors, {} numbers", tensors, checkpoint.parameters.count())) &&
                 Contains("left out: 3 tensors") && Contains(kHead + " F32 [1, 8]: head of task nq") &&
                 Contains("  2 optimiser slots\n") && Contains("note: trained for 1234 steps") &&
                 Contains("output: " + (convert / "model").string()));
  CHECK_THAT(plain.err, Contains("convert: read") && Contains("convert: written"));
  const TensorFileReader weights(convert / "model/model.safetensors");
  CHECK(weights.entries().size() == tensors);
  for (const auto& parameter : checkpoint.parameters.all()) {
    const Tensor stored = weights.read_tensor(parameter->name, Purpose::scratch);
    CHECK(stored.shape() == parameter->shape);
    CHECK(std::equal(stored.data(), stored.data() + stored.size(), parameter->value.data()));
  }
  const Json report = read_json_file(convert / "model/conversion.json");
  CHECK(report["copied"].size() == tensors);
  CHECK(report["left_out"].size() == 3);

  const Result info = succeeds(convert.run({"info", convert / "model"}));
  CHECK_THAT(info.out, Contains(fmt::format("in {} tensors", tensors)) && Contains("attention projections") &&
                           Contains("hidden_size") && !Contains("heads and others"));

  // The folder stands for checkpoint and configuration; heads are included, slots on request. Converting back gives the
  // same bytes.
  succeeds(convert(
      {"--from", "tf", convert / "published", "--with-optimizer-slots", "--output", convert / "model", "--overwrite"}));
  CHECK(TensorFileReader(convert / "model/model.safetensors").entries().size() == tensors + 1);
  CHECK(TensorFileReader(convert / "model/optimizer_slots.safetensors").entries().size() == 3);
  const Result back = succeeds(convert({"--to", "tf-names", convert / "model", "--output", convert / "back"}));
  CHECK_THAT(back.out,
             Contains(fmt::format("back/model.ckpt: {} tensors, 2 optimiser slots; etc_config.json", tensors + 1)));
  const convert::TfBundle original(prefix), returned(convert / "back/model.ckpt");
  REQUIRE(original.tensors().size() == returned.tensors().size());
  for (const auto& [name, tensor] : original.tensors()) {
    CHECK(original.entry(name).masked_crc == returned.entry(name).masked_crc);
    CHECK(tensor.shape == returned.at(name).shape);
  }
  succeeds(convert({"--from", "tf", convert / "back", "--with-optimizer-slots", "--output", convert / "again"}));
  for (const char* file : {"model.safetensors", "optimizer_slots.safetensors", "config.json"}) {
    CHECK(read_file(convert / "again" / file) == read_file(convert / "model" / file));
  }
  // The configuration of a model directory is accepted, too.
  const std::string ours = convert / "model/config.json";
  succeeds(convert({"--from", "tf", convert / "back", "--config", ours, "--output", convert / "ours"}));
  CHECK(read_json_file(convert / "ours/config.json")["model"] == read_json_file(ours)["model"]);
}

TEST_CASE("etc convert lists every tensor that is missing or too many, by name and shape", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  const EtcConfig config = test::small_etc_config();
  test::TfCheckpoint checkpoint(config);
  const std::string beta = "etc_document_bert/long_emb_layer_norm/beta";
  checkpoint.add([&](const std::string& name) { return name == beta ? beta + "_renamed" : name; });
  fs::create_directories(convert / "published");
  checkpoint.writer.write(convert / "published/model.ckpt");
  test::write_file(convert / "published/etc_config.json", json_text(config.to_json()));
  convert.refuses({"--from", "tf", convert / "published", "--output", convert / "model"}, 1,
                  "2 tensors unmatched: " + beta + " [8] absent in file; " + beta + "_renamed F32 [8] unused");
}

TEST_CASE("etc convert initialises the encoder's tensors that a checkpoint lacks only when told to", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  const EtcConfig config = test::small_etc_config();
  test::TfCheckpoint checkpoint(config);
  const std::string beta = "etc_document_bert/long_emb_layer_norm/beta";
  const std::string table = "etc_document_bert/token_emb_lookup/embedding_table";
  checkpoint.add([&](const std::string& name) { return name == beta || name == table ? std::string() : name; });
  fs::create_directories(convert / "published");
  checkpoint.writer.write(convert / "published/model.ckpt");
  test::write_file(convert / "published/etc_config.json", json_text(config.to_json()));
  const std::string from = convert / "published";
  convert.refuses({"--from", "tf", from, "--output", convert / "model"}, 1, "2 tensors unmatched: ");
  convert.refuses({"--from", "tf", from, "--seed", "3", "--output", convert / "model"}, 2,
                  "--seed: expected --allow-missing beside it");
  const Result told =
      succeeds(convert({"--from", "tf", from, "--allow-missing", "--seed", "3", "--output", convert / "model"}));
  CHECK_THAT(told.out, Contains("initialised: 2 tensors") && Contains(table + " [") &&
                           Contains("as a fresh model's: absent in the checkpoint"));
  ParameterSet fresh;
  const EtcEncoder encoder(config, fresh);
  fresh.initialize(3);
  const TensorFileReader weights(convert / "model/model.safetensors");
  for (const auto& parameter : fresh.all()) {
    const bool missing = parameter->name == beta || parameter->name == table;
    const Tensor& expected = missing ? parameter->value : checkpoint.parameters.at(parameter->name).value;
    const Tensor stored = weights.read_tensor(parameter->name, Purpose::scratch);
    CHECK(std::equal(stored.data(), stored.data() + stored.size(), expected.data()));
  }
}

TEST_CASE("etc convert refuses a configuration that is not that of the checkpoint, naming fields", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_published(convert);
  const auto with = [&](const char* key, const Json& value) {
    Json config = test::small_etc_config().to_json();
    config[key] = value;
    test::write_file(convert / "published/etc_config.json", json_text(config));
  };
  const std::vector<std::string> command = {"--from", "tf", convert / "published", "--output", convert / "model"};
  with("share_qkv_projections", true);
  convert.refuses(command, 1, "share_qkv_projections: the configuration says true, the checkpoint false: it has ");
  with("num_hidden_layers", 3);
  convert.refuses(command, 1, "num_hidden_layers: the configuration says 3, the checkpoint 2");
  with("local_radius", 0);
  convert.refuses(command, 2, "local_radius: expected an integer from 1");
  test::write_file(convert / "published/etc_config.json", "{");
  convert.refuses(command, 1, "etc_config.json: not valid JSON");
  with("some_new_key", 1);  // in a foreign file: a warning
  const Result result = succeeds(convert(command));
  CHECK_THAT(result.err, Contains("unknown key some_new_key"));
}

TEST_CASE("etc convert lifts BERT from every form of file alike and says what happened", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  const test::HubBert hub = write_bert(convert);
  const Result result = succeeds(convert({"--from", "bert", convert / "bert", "--output", convert / "model"}));
  CHECK_THAT(result.out,
             Contains("(BERT)\ncopied: ") && Contains("\ninitialised: ") && Contains(": zeros\n") &&
                 Contains("bert.embeddings.position_embeddings.weight F32 [7, 8]: absolute positions: ETC has "
                          "relative ones (--exact keeps them)") &&
                 Contains("bert.pooler.dense.weight F32 [8, 8]: pooler: ETC has none") &&
                 Contains("note: activation: gelu means the erf form there"));
  const std::string expected = read_file(convert / "model/model.safetensors");

  std::vector<test::TorchTensor> tensors;
  for (const auto& [name, values] : hub.tensors) {
    const std::vector<float> numbers(values.data(), values.data() + values.size());
    tensors.push_back({name, "FloatStorage", values.shape(), test::bytes_of(numbers)});
  }
  fs::remove(convert / "bert/model.safetensors");
  for (const std::string& bytes :
       {test::torch_zip(tensors), test::torch_zip(tensors, true), test::torch_stream(tensors)}) {
    test::write_file(convert / "bert/pytorch_model.bin", bytes);
    succeeds(convert({"--from", "bert", convert / "bert", "--output", convert / "model", "--overwrite"}));
    CHECK(read_file(convert / "model/model.safetensors") == expected);
  }

  // The effects of the options.
  const std::vector<std::string> base = {"--from",          "bert",       convert / "bert", "--output",
                                         convert / "model", "--overwrite"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    succeeds(convert(arguments));
    return read_file(convert / "model/model.safetensors");
  };
  CHECK(with({"--seed", "2"}) == expected);  // relative tables are zeros: nothing is random
  const std::string drawn = with({"--relative-init", "normal"});
  CHECK(drawn != expected);
  CHECK(with({"--relative-init", "normal", "--seed", "2"}) != drawn);
  CHECK(with({"--position-mean"}) != expected);
  with({"--exact"});
  CHECK(TensorFileReader(convert / "model/model.safetensors").has("position_emb_lookup_long/embedding_table"));
  const Result info = succeeds(convert.run({"info", convert / "model"}));
  CHECK_THAT(info.out, Contains("max_absolute_position_embeddings   7"));
}

TEST_CASE("etc convert puts RoBERTa's rows into the order of a SentencePiece vocabulary", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  const test::HubBert hub = write_bert(convert, "roberta");
  const std::string blank = "\xC4\xA0", bar = "\xE2\x96\x81";
  const std::vector<std::string> source = {"<s>", "<pad>", "</s>", "<unk>", "a", blank + "a",
                                           "b",   blank,   "c",    "d",     "e", "<mask>"};
  Json rows;
  for (std::size_t i = 0; i < source.size(); ++i) rows[source[i]] = i;
  test::write_file(convert / "bert/vocab.json", json_line(rows));
  const std::vector<test::ModelPiece> pieces = {{"<unk>", 0, test::PieceType::unknown},
                                                {"<s>", 0, test::PieceType::control},
                                                {"</s>", 0, test::PieceType::control},
                                                {bar, -1},
                                                {bar + "a", -2},
                                                {"b", -3},
                                                {"e", -4},
                                                {"d", -5},
                                                {"c", -6},
                                                {"a", -7}};
  test::write_file(convert / "spiece.model", test::sentencepiece_model(pieces));
  convert.refuses({"--from", "roberta", convert / "bert", "--output", convert / "model"}, 2, "expected --vocab");
  const Result result = succeeds(convert(
      {"--from", "roberta", convert / "bert", "--vocab", convert / "spiece.model", "--output", convert / "model"}));
  CHECK_THAT(result.out,
             Contains("note: vocabulary: 10 of 10 pieces found, 0 initialised; 2 pieces of the source unused"));
  const Tensor table = TensorFileReader(convert / "model/model.safetensors")
                           .read_tensor("etc_document_bert/token_emb_lookup/embedding_table", Purpose::scratch);
  const std::vector<std::int64_t> expected = {3, 0, 2, 7, 5, 6, 10, 9, 8, 4};
  REQUIRE(table.dim(0) == 10);
  for (std::int64_t row = 0; row < 10; ++row) {
    const std::int64_t from = expected[static_cast<std::size_t>(row)];
    CHECK(table.data()[row * 8] == hub.at("roberta.embeddings.word_embeddings.weight", from * 8));
  }
  CHECK(read_json_file(convert / "model/config.json")["data"]["vocab_sha256"].get<std::string>().size() == 64);

  rows.clear();
  for (std::size_t i = 0; i < 4; ++i) rows[source[i]] = i;
  test::write_file(convert / "bert/vocab.json", json_line(rows));
  const std::vector<std::string> partial = {
      "--from", "roberta", convert / "bert", "--vocab", convert / "spiece.model", "--output", convert / "other"};
  convert.refuses(partial, 1, "3 of the 10 pieces of the vocabulary are in the checkpoint's vocabulary: expected 90 %");
  std::vector<std::string> allowed = partial;
  allowed.push_back("--allow-partial-vocabulary");
  CHECK_THAT(succeeds(convert(allowed)).out, Contains("3 of 10 pieces found, 7 initialised"));
}

TEST_CASE("other tools read what etc convert writes", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const auto python = test::python_with("numpy, safetensors.numpy");
  if (!python) return test::skip("no Python with numpy and safetensors");
  const Convert convert;
  write_published(convert);
  succeeds(convert({"--from", "tf", convert / "published", "--output", convert / "model"}));
  const Result result = succeeds(convert({"--to", "safetensors", convert / "model", "--output", convert / "exported"}));
  CHECK_THAT(result.out, Contains("exported/model.safetensors: ") && Contains(" tensors; etc_config.json"));
  CHECK(read_json_file(convert / "exported/etc_config.json")["hidden_size"] == 8);
  // The numbers in the TensorFlow data file, located by the offsets of our own reader.
  const convert::TfBundle bundle(convert / "published/model.ckpt");
  Json places = Json::object();
  for (const auto& [name, tensor] : bundle.tensors()) {
    const convert::BundleEntry& entry = bundle.entry(name);
    if (name == "global_step" || name.ends_with("/adam_m") || name.ends_with("/adam_v")) continue;
    const std::string shard = convert::shard_path(convert / "published/model.ckpt", entry.shard, bundle.shards());
    places[name] = {{"shape", tensor.shape}, {"file", shard}, {"offset", entry.offset}, {"size", entry.size}};
  }
  test::write_file(convert / "places.json", json_line(places));
  test::write_file(convert / "check.py", R"(
import json, sys, numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
places = json.load(open(sys.argv[1]))
tensors = load_file(sys.argv[2])
assert sorted(tensors) == sorted(places), set(tensors) ^ set(places)
for name, place in places.items():
    with open(place['file'], 'rb') as f:
        f.seek(place['offset'])
        expected = np.frombuffer(f.read(place['size']), '<f4').reshape(place['shape'])
    assert tensors[name].dtype == np.float32 and tensors[name].tobytes() == expected.tobytes(), name
with safe_open(sys.argv[2], 'np') as f: assert f.metadata() == {'format': 'pt'}
save_file({n: t.astype(np.float16) for n, t in tensors.items()}, sys.argv[3])
)");
  REQUIRE(test::run_python(*python, (convert / "check.py").string() + " " + (convert / "places.json").string() + " " +
                                        (convert / "exported/model.safetensors").string() + " " +
                                        (convert / "model/model.safetensors").string()) == 0);
  // Half-precision output of the other tool is widened by ours.
  succeeds(convert({"--to", "tf-names", convert / "model", "--output", convert / "half"}));
  std::vector<float> head(8);
  convert::TfBundle(convert / "half/model.ckpt").read_floats(kHead, head.data());
  CHECK(head == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("etc convert refuses command lines that cannot be meant", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_published(convert);
  write_bert(convert);
  const std::string published = convert / "published", bert = convert / "bert", model = convert / "model";
  convert.refuses({}, 2, "etc convert: --output is required");
  convert.refuses({"--from", "tf", "--output", model}, 2, "etc convert: input is required");
  convert.refuses({"--average", published, "--seed", "2", "--output", model}, 2, "--seed is no option of --average");
  convert.refuses({"--output", model, bert, "--average", published}, 2, "expected nothing beside the models");
  convert.refuses({published, "--output", model}, 2, "etc convert: expected one of --from and --to");
  convert.refuses({"--from", "tf", "--to", "safetensors", published, "--output", model}, 2, "expected one of --from");
  convert.refuses({"--from", "gpt", published, "--output", model}, 2,
                  "--from: expected tf, bert, roberta, nezha, xlnet or t5, got gpt");
  convert.refuses({"--to", "onnx", published, "--output", model}, 2,
                  "--to: expected safetensors, tf-names, bert or admin-folded, got onnx");
  convert.refuses({"--from", "tf", published}, 2, "--output is required");
  convert.refuses({"--from", "tf", published, "--output", model, "--without-head"}, 2, "did you mean --without-heads?");
  convert.refuses({"--from", "tf", published, "--output", model, "--exact"}, 2, "--exact is no option of --from tf");
  convert.refuses({"--from", "bert", bert, "--output", model, "--with-optimizer-slots"}, 2,
                  "--with-optimizer-slots is no option of --from bert");
  convert.refuses({"--to", "safetensors", published, "--output", model, "--seed", "3"}, 2,
                  "--seed is no option of --to");
  convert.refuses({"--from", "bert", bert, "--output", model, "--exact", "--position-mean"}, 2,
                  "--exact keeps the positions");
  convert.refuses({"--from", "bert", bert, "--output", model, "--exact", "--vocab", "x"}, 2,
                  "--exact keeps the order of the vocabulary");
  convert.refuses(
      {"--from", "tf", convert / "none", "--config", published + "/etc_config.json", "--output", model}, 1,
      "none: no such file or folder: expected a checkpoint file, a folder, or the prefix of a TensorFlow checkpoint");
  convert.refuses({"--from", "tf", convert / "none", "--output", model}, 1, "none: no such file or folder");
  convert.refuses({"--from", "tf", bert, "--config", published + "/etc_config.json", "--output", model}, 1,
                  "no variable begins with etc_document_bert/");
  convert.refuses({"--from", "bert", published, "--source-config", bert + "/config.json", "--output", model}, 1,
                  "bert/embeddings/word_embeddings [12, 8] absent");
  convert.refuses({"--to", "safetensors", published, "--output", model}, 1, "found a folder without config.json");
}

TEST_CASE("etc convert refuses damaged and hostile files with exit code 1 and writes nothing", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_published(convert);
  write_bert(convert);
  const std::string published = convert / "published", bert = convert / "bert", model = convert / "model";
  const fs::path shard = convert / "published/model.ckpt.data-00001-of-00002";
  const std::string good = read_file(shard);
  std::string bad = good;
  bad[bad.size() / 2] ^= 4;
  test::write_file(shard, bad);
  convert.refuses({"--from", "tf", published, "--output", model}, 1, "checksum: expected ");
  test::write_file(shard, good.substr(0, good.size() - 1));
  convert.refuses({"--from", "tf", published, "--output", model}, 1, "(cut off, or of another checkpoint)");
  fs::remove(shard);
  convert.refuses({"--from", "tf", published, "--output", model}, 1, "data-00001-of-00002: cannot open");

  const fs::path trace = convert / "trace", weights = convert / "bert/pytorch_model.bin";
  fs::remove(convert / "bert/model.safetensors");
  const std::string command = test::pickle::text("touch " + trace.string());
  test::write_file(
      weights,
      test::torch_zip(test::pickle::program(test::pickle::call(test::pickle::global("os", "system"), {command})), {}));
  convert.refuses({"--from", "bert", bert, "--output", model}, 1,
                  "os.system is not a name that weights need: refused (only data is read, nothing is run)");
  test::write_file(weights, "not a checkpoint at all");
  convert.refuses({"--from", "bert", bert, "--output", model}, 1, "pytorch_model.bin: header: expected at most");
}

TEST_CASE("etc convert never replaces what is not a model directory", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_published(convert);
  write_bert(convert);
  const std::string published = convert / "published", bert = convert / "bert";
  const std::string refusal = "refusing to replace a folder that is not a model directory";
  const std::string lies_in = " is replaced as a whole, and the checkpoint ";
  convert.refuses({"--from", "bert", bert, "--output", bert}, 2, lies_in + bert);
  convert.refuses({"--from", "tf", published + "/model.ckpt", "--output", published}, 2, lies_in + published);
  // A checkpoint has a config.json and weights, but is not ours; it is refused even with --overwrite.
  for (const bool overwrite : {false, true}) {
    std::vector<std::string> command = {"--from", "tf", published, "--output", bert};
    if (overwrite) command.push_back("--overwrite");
    convert.refuses(command, 2, refusal);
  }
  // The folder of a run and its checkpoints, also under another name.
  succeeds(convert({"--from", "tf", published, "--output", convert / "run/best"}));
  succeeds(convert({"--from", "tf", published, "--output", convert / "model"}));
  test::write_file(convert / "run/lock", "1");
  fs::create_directory_symlink("run/best", convert / "link");
  for (const char* folder : {"run", "run/best", "run/best/", "run/last", "link"}) {
    convert.refuses({"--to", "safetensors", convert / "model", "--output", convert / folder, "--overwrite"}, 2,
                    "refusing to replace the folder or a checkpoint of a run");
  }
  convert.refuses({"--to", "safetensors", convert / "run/best", "--output", convert / "run/best", "--overwrite"}, 2,
                  lies_in + (convert / "run/best").string());
  convert.refuses({"--from", "tf", published, "--output", convert / "bert/config.json"}, 2,
                  "expected a folder, got a file");
  convert.refuses({"--from", "tf", published, "--output", convert / "bert/config.json/below"}, 1, "Not a directory");
}

TEST_CASE("etc convert replaces a model on request only, and never one with notes beside it", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_published(convert);
  std::vector<std::string> command = {"--from", "tf", convert / "published", "--output", convert / "model"};
  fs::create_directory(convert / "model");
  succeeds(convert(command));
  convert.refuses(command, 2, "a model is there already: expected a new or empty folder (--overwrite replaces it)");
  command.push_back("--overwrite");
  succeeds(convert(command));
  test::write_file(convert / "model/notes.txt", "mine");
  convert.refuses(command, 2, "refusing to replace a folder that holds more than a model: notes.txt");
  // Exporting over an earlier export.
  std::vector<std::string> back = {"--to", "tf-names", convert / "model", "--output", convert / "back"};
  succeeds(convert(back));
  convert.refuses(back, 2, "a model is there already");
  back.push_back("--overwrite");
  succeeds(convert(back));
}

TEST_CASE("etc convert replaces a BERT that it wrote itself, until somebody else saves over it", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_bert(convert);
  std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 5; i < 12; ++i) pieces += "w" + std::to_string(i) + "\n";
  test::write_file(convert / "bert/vocab.txt", pieces);
  succeeds(convert({"--from", "bert", convert / "bert", "--as", "dense", "--output", convert / "dense"}));
  std::vector<std::string> command = {"--to", "bert", convert / "dense", "--output", convert / "back"};
  succeeds(convert(command));
  convert.refuses(command, 2, "a model is there already");
  command.push_back("--overwrite");
  succeeds(convert(command));
  CHECK(read_file(convert / "back/vocab.txt") == pieces);
  test::write_file(convert / "back/notes.txt", "mine");
  convert.refuses(command, 2, "refusing to replace a folder that holds more than a model: notes.txt");
  fs::remove(convert / "back/notes.txt");
  // A model saved by a library after training: the same names, and none of our metadata in the weights.
  const test::HubBert trained(test::small_bert(), "");
  trained.write(convert / "back/model.safetensors");
  convert.refuses(command, 2, "refusing to replace a folder that is not a model directory");
}

TEST_CASE("etc convert takes a BERT's scores as residual when told to, and notes when nothing says it", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_bert(convert);
  const std::string note = "scores are not residual: the configuration has neither use_residual_attention nor";
  for (const std::string as : {"etc", "dense"}) {
    const auto converted = [&](const std::vector<std::string>& more) {
      std::vector<std::string> command = {"--from", "bert",     convert / "bert",  "--as",
                                          as,       "--output", convert / "model", "--overwrite"};
      command.insert(command.end(), more.begin(), more.end());
      const Result result = succeeds(convert(command));
      CHECK((result.out.find(note) != std::string::npos) == more.empty());
      const Json model = read_json_file(convert / "model/config.json")["model"];
      return std::pair(model["use_residual_attention"].get<bool>(), model["use_running_mean"].get<bool>());
    };
    CHECK(converted({}) == std::pair(false, false));
    CHECK(converted({"--residual-attention", "sum"}) == std::pair(true, false));
    CHECK(converted({"--residual-attention", "mean"}) == std::pair(true, true));
    CHECK(converted({"--residual-attention", "none"}) == std::pair(false, false));
  }
  convert.refuses(
      {"--from", "t5", convert / "bert", "--as", "dense", "--residual-attention", "sum", "--output", convert / "other"},
      2, "--residual-attention is no option of --from t5 --as dense");
}

TEST_CASE("etc convert lifts into the configuration of a model directory", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_bert(convert);
  const std::string bert = convert / "bert", ours = convert / "lifted/config.json";
  succeeds(convert({"--from", "bert", bert, "--output", convert / "lifted"}));
  const Result again = succeeds(convert({"--from", "bert", bert, "--config", ours, "--output", convert / "again"}));
  CHECK_THAT(again.err, !Contains("unknown key"));
  for (const char* file : {"model.safetensors", "config.json"}) {
    CHECK(read_file(convert / "again" / file) == read_file(convert / "lifted" / file));
  }
  succeeds(convert({"--from", "bert", bert, "--as", "dense", "--output", convert / "dense"}));
  convert.refuses({"--from", "bert", bert, "--config", convert / "dense/config.json", "--output", convert / "other"}, 2,
                  "dense/config.json: model: kind: expected etc, got dense");
}

TEST_CASE("etc convert refuses a model that computes something else, lifted or as dense, naming the key", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  test::HubBert hub = write_bert(convert);
  Json plain = test::small_bert_json();
  plain["model_type"] = "bert";
  const std::string bert = convert / "bert", model = convert / "model";
  const auto refuses = [&](const std::string& from, const Json& changes, const std::string& message, int code = 2) {
    Json config = plain;
    config.update(changes);
    test::write_file(convert / "bert/config.json", json_text(config));
    convert.refuses({"--from", from, bert, "--exact", "--output", model}, code, message);
    convert.refuses({"--from", from, bert, "--as", "dense", "--output", model}, code, message);
  };
  refuses("bert", {{"is_decoder", true}}, "is_decoder: expected false, got true");
  refuses("bert", {{"model_type", "roberta"}},
          "model_type: expected \"bert\", \"electra\" or \"big_bird\", got "
          "\"roberta\" (--from roberta)");
  refuses("roberta", Json::object(), "got \"bert\" (--from bert)");
  refuses("bert", {{"num_hidden_layers", 1}}, "16 unmatched: encoder variables without a parameter: ", 1);
  hub.tensors["bert.embeddings.task_type_embeddings.weight"] =
      hub.tensors["bert.embeddings.token_type_embeddings.weight"];
  hub.write(convert / "bert/model.safetensors");
  refuses("bert", Json::object(),
          "1 unmatched: encoder variables without a parameter: "
          "bert.embeddings.task_type_embeddings.weight F32 [2, 8] (",
          1);
}

TEST_CASE("a conversion that runs out of disk leaves nothing, and the old model whole", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const Convert convert;
  write_published(convert);
  const std::vector<std::string> command = {"--from",          "tf",         convert / "published", "--output",
                                            convert / "model", "--overwrite"};
  // A file size limit, inherited by the program, stands for a full disk.
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  struct Full {
    const struct rlimit& old;
    void (*handler)(int);
    explicit Full(const struct rlimit& limit) : old(limit), handler(::signal(SIGXFSZ, SIG_IGN)) {
      const struct rlimit small = {4096, limit.rlim_max};
      ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~Full() {
      ::setrlimit(RLIMIT_FSIZE, &old);
      ::signal(SIGXFSZ, handler);
    }
  };
  {
    const Full full(before);
    convert.refuses(command, 1, "model.safetensors: cannot write: ");
  }
  succeeds(convert(command));
  const std::string whole = read_file(convert / "model/model.safetensors");
  {
    const Full full(before);
    convert.refuses(command, 1, "model.safetensors: cannot write: ");
  }
  CHECK(read_file(convert / "model/model.safetensors") == whole);
}

TEST_CASE("an interrupted conversion leaves the whole model or nothing", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  using namespace std::chrono_literals;
  const Convert convert;
  EtcConfig config = test::small_etc_config();
  config.vocab_size = 400'000;
  write_published(convert, config);
  const test::TemporaryFolder logs;
  int interrupted = 0;
  for (int i = 0; i < 12; ++i) {
    const int signal = i % 2 == 0 ? SIGINT : SIGTERM;
    test::Child child(
        {test::program().value(), "convert", "--from", "tf", convert / "published", "--output", convert / "model"},
        logs / "log");
    std::this_thread::sleep_for(4ms * (i + 2));
    child.send(signal);
    const int code = child.wait();
    CAPTURE(i, code, read_file(logs / "log.err"));
    // Before the signal handlers are installed and after the model is published, the signal ends the program as usual.
    const bool ended_by_signal = code == 128 + signal;
    if (code != 0) ++interrupted;
    if (code == 0 || (ended_by_signal && fs::exists(convert / "model"))) {
      CHECK(TensorFileReader(convert / "model/model.safetensors").entries().size() > 40);
      CHECK(fs::exists(convert / "model/config.json"));
      fs::remove_all(convert / "model");
    } else {
      CHECK((code == 1 || ended_by_signal));
      if (code == 1) CHECK_THAT(read_file(logs / "log.err"), Contains(": nothing was written"));
    }
    for (const auto& entry : fs::directory_iterator(convert.folder.path())) {
      CHECK(entry.path().filename() == "published");
    }
  }
  WARN(interrupted << " of 12 conversions were stopped before their end");
}
