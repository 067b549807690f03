#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/replaceable.h"

#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/encoder_sizes.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using Catch::Contains;

namespace {

EtcConfig small_config() {
  EtcConfig config = test::with_sizes(etc_config_preset("tiny"),
                                      {.vocabulary = 11, .hidden = 8, .layers = 1, .heads = 2, .feed_forward = 12});
  config.max_absolute_position_embeddings = 5;
  return config;
}

// The parameters of an encoder and of one head.
struct Model {
  ParameterSet parameters;
  EtcEncoder encoder;
  explicit Model(bool head = true) : encoder(small_config(), parameters) {
    if (head) parameters.add("output_weights", {1, 8}, {Initializer::Kind::ones, 0});
  }
};

Json document(const EtcConfig& config) {
  return {{"model", config.to_json()}, {"task", {{"name", "wikihop"}}}};
}

// Writes the parameters under the names that `rename` returns; those with an empty name are left out.
template <typename Rename>
void write_some(const std::filesystem::path& path, const Model& model, Rename&& rename) {
  TensorFileWriter writer;
  for (const auto& parameter : model.parameters.all()) {
    const std::string name = rename(parameter->name);
    if (!name.empty()) writer.add(name, parameter->value);
  }
  writer.write(path);
}

}  // namespace

TEST_CASE("a model directory gives back configuration and every parameter bit by bit", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Model model;
  model.parameters.initialize(7);
  save_model(folder / "run/best", document(small_config()), model.parameters);
  REQUIRE(read_etc_config(folder / "run/best").to_json() == small_config().to_json());
  REQUIRE(read_model_config(folder / "run/best")["task"]["name"] == "wikihop");
  Model other;
  load_parameters(folder / "run/best/model.safetensors", other.parameters);
  for (const auto& parameter : model.parameters.all()) {
    CAPTURE(parameter->name);
    const Tensor& loaded = other.parameters.at(parameter->name).value;
    REQUIRE(loaded.shape() == parameter->shape);
    REQUIRE(std::equal(loaded.data(), loaded.data() + loaded.size(), parameter->value.data()));
    REQUIRE(other.parameters.at(parameter->name).version > 0);
  }
}

TEST_CASE("a mapped model has the bits of a loaded one, from our files and from others'", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto add = [](ParameterSet& set) {
    set.add("table", {200, 128}, {Initializer::Kind::normal, 1});
    set.add("kernel", {160, 128}, {Initializer::Kind::normal, 1});
    set.add("bias", {3}, {Initializer::Kind::normal, 1});
  };
  ParameterSet written;
  add(written);
  written.initialize(7);
  TensorFileWriter writer;
  for (const auto& parameter : written.all()) writer.add(parameter->name, parameter->value);
  writer.write(folder / "ours");
  // The same file with a header of another length, so that no tensor is aligned to 64 bytes.
  const std::string bytes = read_file(folder / "ours");
  std::string shifted = bytes;
  shifted.insert(8 + static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]), 4, ' ');
  shifted[0] = static_cast<char>(shifted[0] + 4);
  test::write_file(folder / "theirs", shifted);
  CHECK(TensorFileReader(folder / "ours").is_mappable("kernel"));
  CHECK_FALSE(TensorFileReader(folder / "theirs").is_mappable("kernel"));
  for (const char* file : {"ours", "theirs"}) {
    ParameterSet mapped;
    add(mapped);
    map_parameters(folder / file, mapped);
    for (const auto& parameter : written.all()) {
      CAPTURE(file, parameter->name);
      const Parameter& other = mapped.at(parameter->name);
      CHECK(std::equal(other.value.data(), other.value.data() + other.size(), parameter->value.data()));
      CHECK(other.version > 0);
    }
  }
  written.at("table").value.data()[300] = NAN;
  TensorFileWriter damaged;
  for (const auto& parameter : written.all()) damaged.add(parameter->name, parameter->value);
  damaged.write(folder / "damaged");
  ParameterSet mapped;
  add(mapped);
  REQUIRE_THROWS_WITH(map_parameters(folder / "damaged", mapped),
                      Contains("table [200, 128]: expected finite weights, got nan at element [2, 44]"));
}

TEST_CASE("every tensor of the model is found and every tensor of the file used, or all are listed", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Model model;
  model.parameters.initialize(7);
  write_some(folder / "a", model, [](const std::string& name) -> std::string {
    if (name == "etc_document_bert/long_emb_layer_norm/gamma") return "bert/pooler/dense/bias";
    return name;
  });
  REQUIRE_THROWS_WITH(load_parameters(folder / "a", model.parameters),
                      Contains("a: 2 tensors unmatched: etc_document_bert/long_emb_layer_norm/gamma [8] absent in "
                               "file; bert/pooler/dense/bias [8] unused"));
  TensorFileWriter writer;
  for (const auto& parameter : model.parameters.all()) {
    writer.add(parameter->name,
               parameter->name == "output_weights" ? parameter->value.reshaped({8, 1}) : parameter->value);
  }
  writer.write(folder / "b");
  REQUIRE_THROWS_WITH(load_parameters(folder / "b", model.parameters),
                      Contains("1 tensor unmatched: output_weights expected [1, 8], got [8, 1]"));
}

TEST_CASE("loading the encoder alone leaves heads as they are, in the model and in the file", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Model model;
  model.parameters.initialize(7);
  write_some(folder / "a", model,
             [](const std::string& name) { return name == "output_weights" ? "cls/nq/long_output_weights" : name; });
  Model other;
  other.parameters.initialize(8);
  REQUIRE_THROWS_WITH(load_parameters(folder / "a", other.parameters), Contains("2 tensors unmatched"));
  load_parameters(folder / "a", other.parameters, Match::encoder);
  const char* table = "etc_document_bert/token_emb_lookup/embedding_table";
  REQUIRE(other.parameters.at(table).value.data()[3] == model.parameters.at(table).value.data()[3]);
  REQUIRE(other.parameters.at("output_weights").value.data()[0] == 1);
  write_some(folder / "b", model,
             [](const std::string& name) { return name == "etc_document_bert/long_emb_layer_norm/gamma" ? "" : name; });
  REQUIRE_THROWS_WITH(load_parameters(folder / "b", other.parameters, Match::encoder),
                      Contains("long_emb_layer_norm/gamma [8] absent in file"));
}

TEST_CASE("position tables are found with and without the model prefix", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Model model;
  model.parameters.initialize(7);
  const auto prefixed = [](const std::string& name) {
    return name.substr(0, 20) == "position_emb_lookup_" ? "etc_document_bert/" + name : name;
  };
  write_some(folder / "a", model, prefixed);
  Model other;
  load_parameters(folder / "a", other.parameters);
  const char* table = "position_emb_lookup_global/embedding_table";
  REQUIRE(other.parameters.at(table).value.data()[9] == model.parameters.at(table).value.data()[9]);
}

TEST_CASE("weights that are not numbers are refused, naming tensor and element", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Model model;
  model.parameters.initialize(7);
  const std::string kernel =
      "etc_document_bert/global_local_transformer_layers/feed_forward_layer_0/dense_layers/layer_0/kernel";
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    model.parameters.at(kernel).value.data()[2 * 12 + 5] = bad;
    write_some(folder / "a", model, [](const std::string& name) { return name; });
    REQUIRE_THROWS_WITH(load_parameters(folder / "a", model.parameters),
                        Contains(kernel + " [8, 12]: expected finite weights, got ") && Contains("at element [2, 5]"));
  }
}

TEST_CASE("a configuration without a model section, with an unknown key or an impossible one is refused",
          "[checkpoint]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "config.json", "{\"vocab_size\": 5}");
  REQUIRE_THROWS_AS(read_etc_config(folder.path()), UsageError);
  REQUIRE_THROWS_WITH(read_etc_config(folder.path()), Contains("config.json: expected an object with a section"));
  test::write_file(folder / "config.json", R"({"model": {"vocab_size": 5, "hiden_size": 8}})");
  REQUIRE_THROWS_WITH(read_etc_config(folder.path()),
                      Contains("model: unknown key hiden_size (did you mean hidden_size?)"));
  test::write_file(folder / "config.json", R"({"model": {"vocab_size": 5, "local_radius": 0}})");
  REQUIRE_THROWS_WITH(read_etc_config(folder.path()), Contains("local_radius: expected an integer from 1"));
}

TEST_CASE("a path that is no model folder is refused with what it is instead", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto is_refused = [](const std::filesystem::path& path, const char* found) {
    REQUIRE_THROWS_WITH(read_etc_config(path),
                        Contains(path.string() + ": expected a model folder") && Catch::EndsWith(found));
  };
  is_refused(folder.path(), "found a folder without config.json");
  is_refused(folder / "none", "found nothing");
  test::write_file(folder / "file", "text");
  is_refused(folder / "file", "found a file");
}

TEST_CASE("parameters without a value cannot be saved", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Model model;
  REQUIRE_THROWS_WITH(save_model(folder / "m", document(small_config()), model.parameters),
                      Contains("has no value to save"));
  REQUIRE(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a model saved over another one leaves what somebody put beside it", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Model model;
  model.parameters.initialize(1);
  save_model(folder / "best", document(small_config()), model.parameters);
  test::write_file(folder / "best/notes.txt", "mine");
  save_model(folder / "best", document(small_config()), model.parameters);
  REQUIRE(read_file(folder / "best/notes.txt") == "mine");
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a model saved over another one leaves no vocabulary of that one", "[checkpoint]") {
  const test::TemporaryFolder folder;
  Model model;
  model.parameters.initialize(1);
  Json config = document(small_config());
  config["data"]["vocab_file"] = "vocab.txt";
  save_model(folder / "best", config, model.parameters, {{"vocab.txt", "a"}});
  test::write_file(folder / "best/vocab.model", "mine");
  save_model(folder / "best", config, model.parameters, {{"vocab.txt", "b"}});
  REQUIRE(read_file(folder / "best/vocab.txt") == "b");
  REQUIRE(read_file(folder / "best/vocab.model") == "mine");
  config["data"]["vocab_file"] = "vocab.model";
  save_model(folder / "best", config, model.parameters, {{"vocab.model", "c"}});
  REQUIRE(!std::filesystem::exists(folder / "best/vocab.txt"));
  REQUIRE(read_file(folder / "best/vocab.model") == "c");
}

TEST_CASE("only a model alone is replaceable, and only on request", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto model = folder / "model";
  const auto refuses = [&](const std::string& why) {
    REQUIRE_THROWS_WITH(require_replaceable(model, true), Contains("model: refusing to replace a folder " + why));
    REQUIRE_THROWS_AS(require_replaceable(model, false), UsageError);
  };
  REQUIRE_NOTHROW(require_replaceable(model, false));
  std::filesystem::create_directories(model);
  REQUIRE_NOTHROW(require_replaceable(model, false));
  test::write_file(folder / "thesis.txt", "years of work");
  REQUIRE_THROWS_WITH(require_replaceable(folder / "thesis.txt", true), Contains("expected a folder, got a file"));

  // Another program's model: config.json and weights, but no section "model". A run: a model directory with subfolders.
  const std::string other = "that is not a model directory", more = "that holds more than a model: ";
  test::write_file(model / "model.safetensors", "numbers");
  refuses(other);
  for (const char* config : {R"({"model_type": "bert"})", R"(["model"])", "{"}) {
    test::write_file(model / "config.json", config);
    refuses(other);
  }
  test::write_file(model / "config.json", R"({"model": {}, "data": {"vocab_file": "vocab.txt"}})");
  test::write_file(model / "vocab.txt", "a");
  REQUIRE_NOTHROW(require_replaceable(model, true));
  REQUIRE_THROWS_WITH(require_replaceable(model, false),
                      Contains("a model is there already") && Contains("--overwrite"));
  std::filesystem::create_directory(model / "best");
  refuses(more + "best");
  std::filesystem::remove(model / "best");
  test::write_file(model / "notes.txt", "mine");
  refuses(more + "notes.txt");
  std::filesystem::remove(model / "notes.txt");
  std::filesystem::remove(model / "model.safetensors");
  refuses(other);
}

TEST_CASE("a folder that is named like a file of a model is not replaced", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto model = folder / "model";
  std::filesystem::create_directories(model / "model.ckpt.data-old");
  test::write_file(model / "model.safetensors", "numbers");
  test::write_file(model / "config.json", R"({"model": {}})");
  REQUIRE_THROWS_WITH(require_replaceable(model, true), Contains("holds more than a model: model.ckpt.data-old"));
}
