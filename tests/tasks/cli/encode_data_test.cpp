// etc encode --data: the states of prepared examples equal those of every example alone, bit for bit.
#include "etc_core/base/files.h"
#include "etc_core/nn/backends.h"
#include "tasks/train/evaluate.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/tasks/train/place.h"

namespace {

namespace fs = std::filesystem;
using etc::test::has;
using etc::test::Place;
using etc::test::Result;
using Floats = std::vector<float>;

// A place with a trained model that carries residual scores of all types.
struct DataScene : Place {
  fs::path model = folder / "run/best", data = folder / "train.h5", output = folder / "states.h5";

  DataScene() {
    train({"--use-residual-attention", "--relative-pos-max-distance", "4", "--relative-vocab-size", "12"});
  }
  Result encode(const etc::test::Words& more) const {
    etc::test::Words words = {"encode", "--model", model, "--output", output, "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
};

// One example encoded alone through the library, with everything an observer receives, under the names of the file.
std::map<std::string, Floats> encoded_alone(etc::TaskModel& model, const etc::data::DatasetReader& reader,
                                            std::int64_t index) {
  const std::vector<etc::data::LoadedExample> alone = {{index, index, reader.read(index)}};
  const etc::EncoderInput input = model.task->feed(alone, "train.h5");
  std::map<std::string, Floats> all;
  const auto put = [&](const std::string& name, const etc::Tensor& values) {
    if (values) all[name].assign(values.data(), values.data() + values.size());
  };
  etc::ForwardOptions options;
  options.watch = [&](std::int64_t layer, const etc::Tensor& of_long, const etc::Tensor& of_global,
                      const etc::ExternalScores& scores) {
    const std::string prefix = layer < 0 ? "embedding_" : "layer_" + std::to_string(layer) + "_";
    put(prefix + "long", of_long);
    put(prefix + "global", of_global);
    put(prefix + "scores_l2l", scores.of("l2l"));
    put(prefix + "scores_l2g", scores.of("l2g"));
    put(prefix + "scores_g2g", scores.of("g2g"));
    put(prefix + "scores_g2l", scores.of("g2l"));
  };
  etc::Tape tape(etc::Recording::off);
  const etc::EncoderStates states = model.encoder->forward(tape, input, options);
  put("long", states.long_states.value());
  put("global", states.global_states.value());
  return all;
}

TEST_CASE("prepared examples are encoded with the bits of each example alone", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const DataScene scene;
  etc::register_cpu_backend();
  const etc::LoadedModel loaded = etc::load_model(scene.model);
  loaded.model->encoder->release_kernels();
  const auto reader = etc::open_dataset({scene.data.string()}, loaded.model->task->schema(), {});
  for (const bool all_layers : {false, true}) {
    CAPTURE(all_layers);
    const Result result = scene.encode(all_layers ? etc::test::Words{"--data", scene.data, "--all-layers"}
                                                  : etc::test::Words{"--data", scene.data});
    INFO(result.err);
    REQUIRE(result.code == 0);
    CHECK(has(result.out, "output: " + scene.output.string()));
    const etc::test::GoldenFile file(scene.output);
    std::map<std::string, std::vector<Floats>> features;
    std::size_t expected_features = 0;
    for (const std::string& name : file.groups("examples")) {
      if (name == "id" || name.ends_with("_ids")) continue;
      features[name] = file.read_ragged<float>("examples/" + name);
    }
    const auto token_ids = file.read_ragged<std::int64_t>("examples/long_token_ids");
    for (std::int64_t i = 0; i < reader->size(); ++i) {
      CAPTURE(i);
      const auto at = static_cast<std::size_t>(i);
      const auto alone = encoded_alone(*loaded.model, *reader, i);
      CHECK(token_ids[at] == std::get<std::vector<std::int64_t>>(reader->read(i).at("long_token_ids")));
      CHECK(alone.at("long").size() == token_ids[at].size() * 16);
      for (const auto& [name, rows] : features) {
        CAPTURE(name);
        REQUIRE(rows.size() == static_cast<std::size_t>(reader->size()));
        CHECK(rows[at] == alone.at(name));
      }
      expected_features = all_layers ? alone.size() : 2;
    }
    CHECK(features.size() == expected_features);
  }
}

TEST_CASE("encode gives the same bits from prepared data and from padded inputs", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const DataScene scene;
  REQUIRE(scene.encode({"--data", scene.data}).code == 0);
  const etc::test::GoldenFile states(scene.output);
  const Floats expected = states.read_ragged<float>("examples/long")[3];

  // Example 3 as arrays: ids, and labels split into masks and relative ids.
  const etc::LoadedModel loaded = etc::load_model(scene.model);
  const auto reader = etc::open_dataset({scene.data.string()}, loaded.model->task->schema(), {});
  const std::vector<etc::data::LoadedExample> alone = {{3, 0, reader->read(3)}};
  const etc::EncoderInput input = loaded.model->task->feed(alone, "train.h5");
  const std::int64_t L = input.long_tokens(), G = input.global_tokens();
  const fs::path inputs = scene.folder / "inputs.h5";
  {
    etc::test::H5Edit file(inputs);
    const auto put = [&](const std::string& name, const auto& values, std::vector<std::int64_t> shape) {
      file.put_integers("/inputs/" + name, {values.begin(), values.end()}, 4, true, std::move(shape), {});
    };
    put("token_ids", input.token_ids, {1, L});
    put("global_token_ids", input.global_token_ids, {1, G});
    put("segment_ids", input.segment_ids, {1, L});
    put("global_segment_ids", input.global_segment_ids, {1, G});
    const auto put_labels = [&](const std::string& type, const auto& labels, std::int64_t queries, std::int64_t keys) {
      std::vector<std::int64_t> mask, ids;
      for (const std::uint8_t label : labels) {
        mask.push_back(label != 255);
        ids.push_back(label != 255 ? label : 0);
      }
      put(type + "_att_mask", mask, {1, queries, keys});
      put(type + "_relative_att_ids", ids, {1, queries, keys});
    };
    put_labels("l2l", input.labels.l2l, L, 9);
    put_labels("l2g", input.labels.l2g, L, G);
    put_labels("g2g", input.labels.g2g, G, G);
    put_labels("g2l", input.labels.g2l, G, L);
  }
  const Result result = scene.encode({"--inputs", inputs});
  INFO(result.err);
  REQUIRE(result.code == 0);
  CHECK(etc::test::GoldenFile(scene.output).read<float>("outputs/long").values == expected);

  const std::string states_without_limit = etc::read_file(scene.output);
  fs::remove(scene.output);
  const Result refused = scene.encode({"--inputs", inputs, "--memory-limit", "5MB"});
  CHECK(refused.code == 1);
  CHECK(has(refused.err, "the memory limit of 5.0 MB"));
  CHECK(!fs::exists(scene.output));
  REQUIRE(scene.encode({"--inputs", inputs, "--memory-limit", "200MB"}).code == 0);
  CHECK(etc::read_file(scene.output) == states_without_limit);
}

TEST_CASE("encode refuses data that are not the model's and writes nothing", "[cli]") {
  if (!etc::test::program()) return etc::test::skip("ETC_PROGRAM is not set");
  const DataScene scene;
  const auto failed = [&](const fs::path& data, const std::string& part, int code = 1) {
    const Result result = scene.encode({"--data", data});
    INFO(result.err);
    CHECK(result.code == code);
    CHECK(has(result.err, part));
    CHECK(!fs::exists(scene.output));
  };
  failed(scene.folder / "other.h5", "vocab_sha256");
  failed(scene.folder / "empty.h5", "no examples");
  failed(scene.folder / "missing.h5", "missing.h5");
  const Result both = scene.encode({"--data", scene.data, "--inputs", scene.data});
  CHECK(both.code == 2);
  CHECK(has(both.err, "expected either --inputs or --data"));

  // An encoder without a head names no task: the data's own task feeds it.
  etc::Json config = etc::read_json_file(scene.model / "config.json");
  config.erase("task");
  config.erase("data");
  etc::test::write_file(scene.model / "config.json", etc::json_line(config));
  const Result bare = scene.encode({"--data", scene.data});
  INFO(bare.err);
  CHECK(bare.code == 0);
  config["task"] = {{"name", "hotpotqa"}};
  etc::test::write_file(scene.model / "config.json", etc::json_line(config));
  fs::remove(scene.output);
  failed(scene.data, "the model was trained for hotpotqa, the data were prepared for wikihop");
}

}  // namespace
