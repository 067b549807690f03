// etc convert --as dense and --to bert from the user's point of view.
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/bert/dense_bert.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_encoder.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/tasks/train/program.h"

using namespace etc;
using Catch::Contains;

namespace {

struct DenseScene {
  test::TemporaryFolder folder, logs;

  std::string path(const std::string& name) const { return (folder / name).string(); }
  test::Result run(const std::vector<std::string>& arguments, int code = 0) const {
    const test::Result result = test::run_program(arguments, logs.path());
    INFO(result.out << result.err);
    REQUIRE(result.code == code);
    return result;
  }
};

}  // namespace

TEST_CASE("a BERT becomes a dense encoder that the program knows, and a BERT again", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const DenseScene scene;
  std::filesystem::create_directories(scene.path("bert"));
  const test::HubBert hub(test::small_bert(), "");
  hub.write(scene.path("bert/model.safetensors"));
  Json config = test::small_bert_json();
  config["model_type"] = "bert";
  test::write_file(scene.path("bert/config.json"), json_text(config));

  const std::string model = scene.path("model"), back = scene.path("back");
  const test::Result read =
      scene.run({"convert", "--from", "bert", scene.path("bert"), "--as", "dense", "--output", model});
  CHECK_THAT(read.out,
             Contains("copied: " + std::to_string(hub.tensors.size()) + " tensors") && Contains("output: " + model));
  CHECK(read_json_file(scene.path("model/config.json")).at("model").at("kind") == "dense");
  CHECK_THAT(scene.run({"info", model}).out, Contains("dense") && Contains("parameters"));
  CHECK_THAT(scene.run({"convert", "--to", "bert", model, "--output", back}).out,
             Contains(std::to_string(hub.tensors.size()) + " tensors; config.json"));
  const TensorFileReader written(scene.path("back/model.safetensors"));
  REQUIRE(written.entries().size() == hub.tensors.size());
  for (const auto& [name, values] : hub.tensors) {
    CAPTURE(name);
    const Tensor got = written.read_tensor(name, Purpose::scratch);
    REQUIRE(got.shape() == values.shape());
    CHECK(std::equal(got.data(), got.data() + got.size(), values.data()));
  }
  CHECK(read_json_file(scene.path("back/config.json")).at("model_type") == "bert");
  CHECK_THAT(scene.run({"info", back}).out, Contains("model of another program") && Contains("attention projections") &&
                                                Contains(std::to_string(hub.tensors.size()) + " tensors"));

  const auto refuses = [&](std::vector<std::string> arguments, const std::string& message, int code = 2) {
    arguments.insert(arguments.begin(), "convert");
    arguments.insert(arguments.end(), {"--output", scene.path("none")});
    CHECK_THAT(scene.run(arguments, code).err, Contains(message));
    CHECK(!std::filesystem::exists(scene.path("none")));
  };
  const std::string bert = scene.path("bert");
  refuses({"--from", "bert", bert, "--as", "dense", "--exact"}, "--exact is no option of --from bert --as dense");
  refuses({"--from", "t5", bert}, "--from t5: expected --as dense beside it");
  refuses({"--from", "t5", bert, "--as", "dense"}, "model_type: expected \"t5\", got \"bert\"");
  refuses({"--from", "tf", bert, "--as", "dense"},
          "--as dense: expected --from bert, roberta, nezha, xlnet, t5, got tf");
  refuses({"--to", "tf-names", model},
          "expected an ETC encoder, got one of kind dense (etc convert writes any as --to safetensors", 1);
  refuses({"--to", "bert", bert}, "section \"model\"");
}

TEST_CASE("a dense encoder is exported as safetensors, tensor by tensor, with its kind", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const DenseScene scene;
  const DenseConfig config = convert::dense_config_for(test::small_bert());
  ParameterSet parameters;
  register_cpu_backend();
  const DenseEncoder encoder(config, parameters);
  parameters.initialize(1);
  save_model(scene.path("model"), {{"model", config.to_json()}}, parameters);
  const std::string exported = scene.path("exported");
  CHECK_THAT(scene.run({"convert", "--to", "safetensors", scene.path("model"), "--output", exported}).out,
             Contains(std::to_string(parameters.all().size()) + " tensors; etc_config.json"));
  CHECK(read_json_file(scene.path("exported/etc_config.json")) == config.to_json());
  const TensorFileReader written(scene.path("exported/model.safetensors"));
  REQUIRE(written.entries().size() == parameters.all().size());
  for (const auto& parameter : parameters.all()) {
    CAPTURE(parameter->name);
    const Tensor got = written.read_tensor(parameter->name, Purpose::scratch);
    REQUIRE(got.shape() == parameter->shape);
    CHECK(std::equal(got.data(), got.data() + got.size(), parameter->value.data()));
  }
  CHECK_THAT(scene.run({"info", exported}).out, Contains("exported model") && Contains("feed-forward"));
}

TEST_CASE("padded inputs of a dense encoder are encoded as its sequences alone", "[cli]") {
  if (!test::program()) return test::skip("ETC_PROGRAM is not set");
  const DenseScene scene;
  DenseConfig config = convert::dense_config_for(test::small_bert());
  config.use_residual_attention = true;
  ParameterSet parameters;
  register_cpu_backend();
  DenseEncoder encoder(config, parameters);
  parameters.initialize(1);
  save_model(scene.path("model"), {{"model", config.to_json()}}, parameters);
  // Two sequences of 5 tokens; the second one has 3 tokens and masked padding.
  const std::vector<std::int32_t> ids = {3, 1, 11, 0, 7, 4, 9, 2, 0, 0}, types = {0, 0, 1, 1, 1, 0, 1, 1, 0, 0};
  {
    test::H5Edit file(scene.path("in.h5"));
    file.put_integers("/inputs/token_ids", {ids.begin(), ids.end()}, 8, true, {2, 5}, {});
    file.put_integers("/inputs/segment_ids", {types.begin(), types.end()}, 8, true, {2, 5}, {});
    std::vector<std::int64_t> mask(50, 1);
    for (std::size_t i = 25; i < 50; ++i) mask[i] = i % 5 < 3;
    file.put_integers("/inputs/self_att_mask", mask, 8, true, {2, 5, 5}, {});
  }
  scene.run({"encode", "--inputs", scene.path("in.h5"), "--model", scene.path("model"), "--output",
             scene.path("out.h5"), "--all-layers"});
  const test::GoldenFile out(scene.path("out.h5"));
  const auto states = out.read<float>("outputs/long");
  CHECK(states.shape == std::vector<std::int64_t>{2, 5, 8});
  CHECK(out.read<float>("outputs/layer_1/scores_self").shape == std::vector<std::int64_t>{2, 2, 5, 9});
  CHECK(!out.has("outputs/global"));
  for (const auto& [first, length] : {std::pair<std::ptrdiff_t, std::ptrdiff_t>{0, 5}, {5, 3}}) {
    EncoderInput input;
    input.long_offsets = {0, length};
    input.global_offsets = {0, 0};
    input.token_ids = {ids.begin() + first, ids.begin() + first + length};
    input.segment_ids = {types.begin() + first, types.begin() + first + length};
    Tape tape(Recording::off);
    const Tensor alone = encoder.forward(tape, input, {}).long_states.value();
    for (std::int64_t i = 0; i < alone.size(); ++i) {
      CHECK(states.values[static_cast<std::size_t>(first * 8 + i)] == Approx(alone.data()[i]).margin(1e-6));
    }
  }
}
