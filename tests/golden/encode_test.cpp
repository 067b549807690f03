// The whole program, from model directory and inputs to states: `etc encode` on golden cases and on invalid input.
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/nn/tiny_model.h"
#include "tests/golden/golden_case.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/h5_edit.h"
#include "tests/support/mutate.h"
#include "tests/tasks/train/program.h"

using namespace etc;
using Catch::Contains;
using test::GoldenCase;
using test::GoldenFile;
using test::run_program;
using test::TemporaryFolder;
using test::Worst;

namespace {

// A model directory with the golden file's weights and an extra head, which the encoder must ignore.
void write_golden_model(const GoldenCase& golden, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  TensorFileWriter weights;
  for (const std::string& name : test::data_sets_below(golden.file, "weights")) {
    const auto array = golden.file.read<float>("weights/" + name);
    weights.add(name, Tensor::from(array.values, array.shape, Purpose::weights));
  }
  weights.add("cls/nq/long_output_weights", Tensor::zeros({4, golden.config.hidden_size}, Purpose::weights));
  weights.write(folder / "model.safetensors");
  test::write_file(folder / "config.json", json_text({{"model", golden.config.to_json()}}));
}

}  // namespace

TEST_CASE("etc encode writes the published model's states and scores", "[golden]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const auto files = test::model_files("etc");
  if (files.empty()) return;
  test::GoldenReport report("etc encode on golden etc files: worst absolute difference",
                            {"states", "scores", "arrays"});
  for (const auto& path : files) {
    CAPTURE(path.filename().string());
    const TemporaryFolder folder;
    const GoldenCase golden(path);
    write_golden_model(golden, folder / "model");
    const auto result = run_program({"encode", "--inputs", path.string(), "--model", (folder / "model").string(),
                                     "--output", (folder / "out.h5").string(), "--all-layers"},
                                    folder.path());
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    const GoldenFile out(folder / "out.h5");
    // Outputs that are missing in the file: it may omit all layers, but not some of them.
    for (const std::string& name : test::data_sets_below(out, "outputs")) {
      CAPTURE(name);
      if (name.rfind("layer_", 0) == 0 && !golden.file.has("outputs/layer_0")) continue;
      CHECK(golden.file.has("outputs/" + name));
    }
    Worst states, scores;
    double arrays = 0;
    for (const std::string& name : test::data_sets_below(golden.file, "outputs")) {
      const std::string last = name.substr(name.rfind('/') + 1);
      if (last == "att_long" || last == "att_global") continue;  // inside a layer: `encode` does not write them
      CAPTURE(name);
      REQUIRE(out.has("outputs/" + name));
      const auto expected = test::best_reference(golden.file, "", "outputs", name);
      const auto ours = out.read<float>("outputs/" + name);
      REQUIRE(ours.shape == expected.shape);
      ++arrays;
      if (last.rfind("scores_", 0) == 0) {
        const std::int64_t queries = expected.shape[2], columns = expected.shape[3];
        scores.compare(name, expected.values, ours.values, 1, [&](std::int64_t i) {
          return golden.masks.allowed(last.substr(7), i / columns / queries / golden.config.num_attention_heads,
                                      i / columns % queries, i % columns);
        });
      } else {
        states.compare(name, expected.values, ours.values, 1, test::counted_rows(golden, name));
      }
    }
    report.row(
        path.filename().string(),
        {states.value, golden.config.use_residual_attention ? std::optional(scores.value) : std::nullopt, arrays});
    CAPTURE(states.where, scores.where);
    CHECK(states.value <= 1e-5);
    CHECK(scores.value <= 1e-5);
  }
}

namespace {

// A tiny model directory and inputs of two examples, L = 6, G = 3, which tests then damage.
struct Scene {
  TemporaryFolder folder;
  EtcConfig config = test::tiny_config();

  explicit Scene(std::int64_t length = 6, std::int64_t globals = 3, std::int64_t positions = 0) {
    config.max_absolute_position_embeddings = positions;
    test::TinyModel model(config);
    save_model(folder / "model", {{"model", config.to_json()}}, model.parameters);
    edit([&](test::H5Edit& file) {
      put(file, "token_ids", {2, length}, 4);
      put(file, "global_token_ids", {2, globals}, 1);
    });
  }

  static void put(test::H5Edit& file, const std::string& name, const std::vector<std::int64_t>& shape,
                  std::int64_t value) {
    std::int64_t size = 1;
    for (const std::int64_t extent : shape) size *= extent;
    file.put_integers("/inputs/" + name, std::vector<std::int64_t>(static_cast<std::size_t>(size), value), 4, true,
                      shape, {});
  }

  template <typename Change>
  void edit(Change&& change) {
    test::H5Edit file(folder / "in.h5");
    change(file);
  }

  test::Result encode() {
    return run_program({"encode", "--inputs", (folder / "in.h5").string(), "--model", (folder / "model").string(),
                        "--output", (folder / "out.h5").string()},
                       folder.path());
  }
};

}  // namespace

TEST_CASE("etc encode says what is wrong with its inputs", "[nn]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  struct Case {
    const char* message;
    std::function<void(test::H5Edit&)> change;
  };
  const auto put = Scene::put;
  const std::vector<Case> cases = {
      {"in example 0 of the file: embedding: token_ids: example 0, position 0: expected an id from 0 to 19, got 20",
       [&](test::H5Edit& file) {
         put(file, "token_ids", {2, 6}, 20);
       }},
      {"global_token_ids: example 0, position 0: expected an id from 0 to 19, got -1",
       [&](test::H5Edit& file) {
         put(file, "global_token_ids", {2, 3}, -1);
       }},
      {"in.h5:/inputs/token_ids: expected values of 32 bits, got 4294967296 at element 0",
       [&](test::H5Edit& file) {
         file.put_integers("/inputs/token_ids", std::vector<std::int64_t>(12, 1ll << 32), 8, true, {2, 6}, {});
       }},
      {"in.h5:/inputs/token_ids: expected integers of 1, 2, 4 or 8 bytes",
       [&](test::H5Edit& file) { file.put_floats("/inputs/token_ids", std::vector<double>(12, 1), 4); }},
      {"in.h5:/inputs/token_ids: expected two dimensions, got [12]",
       [&](test::H5Edit& file) { put(file, "token_ids", {12}, 1); }},
      {"in.h5:/inputs/token_ids: is missing", [&](test::H5Edit& file) { file.remove("/inputs/token_ids"); }},
      {"in.h5:/inputs: is missing", [&](test::H5Edit& file) { file.remove("/inputs"); }},
      {"in.h5:/inputs/segment_id: is not an input (did you mean segment_ids?)",
       [&](test::H5Edit& file) {
         put(file, "segment_id", {2, 6}, 1);
       }},
      {"in.h5:/inputs/segment_ids: expected [B=2, L=6], got [2, 5]",
       [&](test::H5Edit& file) {
         put(file, "segment_ids", {2, 5}, 1);
       }},
      {"in.h5:/inputs/l2l_att_mask: expected [B=2, L=6, W=7], got [2, 6, 9]",
       [&](test::H5Edit& file) {
         put(file, "l2l_att_mask", {2, 6, 9}, 1);
       }},
      {"labels: g2g: example 0, global 0, global 0: expected a mask of 0 or 1, got 2",
       [&](test::H5Edit& file) {
         put(file, "g2g_att_mask", {2, 3, 3}, 2);
       }},
      {"labels: l2l and l2g share one softmax: expected relative ids for both or for neither, got only l2l",
       [&](test::H5Edit& file) {
         put(file, "l2l_relative_att_ids", {2, 6, 7}, 2);
       }},
      {"labels: l2g: example 0, long 0, global 0: expected a relative id in [0, R=9), got 9",
       [&](test::H5Edit& file) {
         put(file, "l2l_relative_att_ids", {2, 6, 7}, 2);
         put(file, "l2g_relative_att_ids", {2, 6, 3}, 9);
       }},
      {"position_ids: given, but max_absolute_position_embeddings is 0",
       [&](test::H5Edit& file) {
         put(file, "position_ids", {2, 6}, 0);
       }},
      {"in.h5:/inputs/long_embedding_adder: expected [B=2, L=6, H=12], got [1]",
       [&](test::H5Edit& file) { file.put_floats("/inputs/long_embedding_adder", {0.5}, 4); }},
      {"in.h5:/inputs/long_embedding_adder: expected finite numbers, got nan at element 1",
       [&](test::H5Edit& file) {
         file.put_floats("/inputs/long_embedding_adder", {0.5, NAN}, 8);
       }},
      {"expected at least one example, got none", [&](test::H5Edit& file) {
         put(file, "token_ids", {0, 6}, 1);
         put(file, "global_token_ids", {0, 3}, 1);
       }}};
  for (const Case& one : cases) {
    CAPTURE(one.message);
    Scene scene;
    scene.edit(one.change);
    const auto result = scene.encode();
    CHECK(result.code == 1);
    CHECK_THAT(result.err, Contains(one.message));
    CHECK(!std::filesystem::exists(scene.folder / "out.h5"));
  }
}

TEST_CASE("etc encode refuses examples longer than the position tables", "[nn]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  Scene scene(6, 3, 5);
  const auto result = scene.encode();
  REQUIRE(result.code == 1);
  REQUIRE_THAT(result.err,
               Contains("long length: example 0: expected at most max_absolute_position_embeddings=5, got 6"));
}

TEST_CASE("etc encode says what is wrong with its model", "[nn]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const auto spoil_config = [](const char* key, const Json& value, int code, const char* message) {
    CAPTURE(key, message);
    Scene scene;
    Json config = read_json_file(scene.folder / "model/config.json");
    config["model"][key] = value;
    test::write_file(scene.folder / "model/config.json", json_text(config));
    const auto result = scene.encode();
    CHECK(result.code == code);
    CHECK_THAT(result.err, Contains(message));
  };
  spoil_config("local_radius", 0, 2, "config: local_radius: expected an integer from 1 to 16777216, got 0");
  spoil_config("num_attention_heads", 5, 2, "hidden_size: expected a multiple of num_attention_heads=5, got 12");
  spoil_config("hidden_act", "selu", 2, "hidden_act: expected one of gelu, relu, tanh, linear, got \"selu\"");
  spoil_config("heads", 5, 2, "model: unknown key heads");
  spoil_config("hidden_size", "12", 2, "hidden_size: expected an integer, got \"12\"");
  spoil_config("intermediate_size", 32, 1, "dense_layers/layer_0/kernel expected [12, 32], got [12, 16]");
  spoil_config("share_qkv_projections", true, 1, "tensors unmatched");
  {
    Scene scene;
    std::filesystem::remove(scene.folder / "model/model.safetensors");
    REQUIRE_THAT(scene.encode().err, Contains("model.safetensors: cannot open"));
  }
  {
    Scene scene;
    test::TinyModel model(scene.config);
    const char* name = "etc_document_bert/segment_emb_lookup/embedding_table";
    model.parameters.at(name).value.data()[13] = INFINITY;
    save_model(scene.folder / "model", {{"model", scene.config.to_json()}}, model.parameters);
    const auto result = scene.encode();
    REQUIRE(result.code == 1);
    REQUIRE_THAT(result.err,
                 Contains(name + std::string(" [4, 12]: expected finite weights, got inf at element [1, 1]")));
  }
}

TEST_CASE("etc encode takes examples without long tokens and without global tokens", "[nn]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  for (const auto& [length, globals] : {std::pair(0, 3), std::pair(6, 0), std::pair(0, 0), std::pair(1, 1)}) {
    CAPTURE(length, globals);
    Scene scene(length, globals);
    scene.edit([&, l = length, g = globals](test::H5Edit& file) {
      Scene::put(file, "l2g_att_mask", {2, l, g}, 1);
      Scene::put(file, "l2l_relative_att_ids", {2, l, 7}, 1);
      Scene::put(file, "l2g_relative_att_ids", {2, l, g}, 1);
    });
    const auto result = scene.encode();
    CAPTURE(result.err);
    REQUIRE(result.code == 0);
    REQUIRE(result.out == "output: " + (scene.folder / "out.h5").string() + "\n");
    const GoldenFile out(scene.folder / "out.h5");
    REQUIRE(out.read<float>("outputs/long").shape == std::vector<std::int64_t>{2, length, 12});
    REQUIRE(out.read<float>("outputs/global").shape == std::vector<std::int64_t>{2, globals, 12});
  }
}

namespace {

void encode_mutants(int count) {
  Scene scene;
  const std::string good = read_file(scene.folder / "in.h5");
  for (int seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    test::write_file(scene.folder / "in.h5", test::mutate(good, static_cast<std::uint64_t>(seed)));
    const auto result = scene.encode();
    CAPTURE(result.err);
    REQUIRE((result.code == 0 || result.code == 1));
  }
}

}  // namespace

TEST_CASE("etc encode survives damaged inputs", "[nn]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  encode_mutants(20);
}

TEST_CASE("etc encode survives many damaged inputs", "[nn][slow]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  encode_mutants(1000);
}

TEST_CASE("etc info describes models, configurations and tensor files", "[nn]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  Scene scene;
  const auto info = [&](const std::string& path) {
    return run_program({"info", (scene.folder / path).string()}, scene.folder.path());
  };
  const auto count = [](const EtcConfig& config) {
    ParameterSet parameters;
    const EtcEncoder encoder(config, parameters);
    return std::pair(parameters.count(), parameters.all().size());
  };
  const auto [numbers, tensors] = count(scene.config);
  REQUIRE(numbers > 9999);
  const std::string text = std::to_string(numbers);
  const std::string expected = text.substr(0, text.size() - 3) + "," + text.substr(text.size() - 3) + " in " +
                               std::to_string(tensors) + " tensors";
  for (const char* path : {"model", "model/config.json", "model/model.safetensors"}) {
    CAPTURE(path);
    const auto result = info(path);
    REQUIRE(result.code == 0);
    REQUIRE_THAT(result.out, Contains(expected));
  }
  REQUIRE_THAT(info("model/model.safetensors").out,
               Contains("F32   [20, 12]           etc_document_bert/token_emb_lookup/embedding_table"));
  test::write_file(scene.folder / "etc_config.json",
                   R"({"vocab_size": 30522, "share_qkv_projections": false, "new_field": 1})");
  const auto foreign = info("etc_config.json");
  REQUIRE(foreign.code == 0);
  REQUIRE_THAT(foreign.out, Contains("165,825,024 in 462 tensors"));
  REQUIRE_THAT(foreign.err, Contains("etc_config.json: unknown key new_field is ignored"));
  REQUIRE(info("none").code == 1);
  REQUIRE(info("in.h5").code == 0);
  REQUIRE_THAT(info("in.h5").out, Contains("inputs/token_ids"));
}
