// Golden TensorFlow checkpoints of ETC: after conversion they have the weights of the golden file beside them and give
// the same outputs.
#include "etc_core/checkpoint/convert/converted_model.h"
#include "etc_core/checkpoint/convert/tf_etc.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/golden/golden_case.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::convert;
namespace fs = std::filesystem;

TEST_CASE("golden ETC checkpoints give the golden weights and outputs", "[convert][golden]") {
  register_cpu_backend();
  const auto golden_folder = test::golden_folder();
  test::GoldenReport report("ETC checkpoints, worst difference", {"outputs"});
  int found = 0;
  if (golden_folder && fs::exists(*golden_folder / "ckpt")) {
    for (const auto& entry : fs::directory_iterator(*golden_folder / "ckpt")) {
      const fs::path file = *golden_folder / (entry.path().filename().string() + ".h5");
      if (!fs::exists(entry.path() / "etc_config.json") || !fs::exists(file)) continue;
      CAPTURE(file.string());
      const test::GoldenCase golden(file);
      const EtcConfig config =
          etc_config_from_json(read_json_file(entry.path() / "etc_config.json"), "etc_config.json", UnknownKeys::warn);
      const test::TemporaryFolder folder;
      {
        ParameterSet parameters;
        TfEtcExtras extras;
        const auto source = open_tensors(entry.path());
        const ConversionReport done = read_tf_etc(*source, config, {true, true}, parameters, extras);
        REQUIRE(done.left_out.empty());
        REQUIRE(extras.global_step == 1234);
        REQUIRE(done.copied.size() + 1 == source->tensors().size());
        save_converted_model(folder / "model", {Json{{"model", config.to_json()}}, parameters, extras}, done);
      }
      // From here on, use only the model directory, like any other program.
      ParameterSet parameters;
      EtcEncoder encoder(read_etc_config(folder / "model"), parameters);
      load_parameters(folder / "model/model.safetensors", parameters, Match::encoder);
      for (const auto& parameter : parameters.all()) {
        CAPTURE(parameter->name);
        const auto expected = golden.file.read<float>("weights/" + parameter->name);
        REQUIRE(expected.shape == parameter->shape);
        REQUIRE(std::equal(expected.values.begin(), expected.values.end(), parameter->value.data()));
      }
      Tape tape(Recording::off);
      const EncoderStates output = encoder.forward(tape, golden.input(), {});
      test::Worst worst;
      worst.compare("long", test::best_reference(golden.file, "", "outputs", "long").values,
                    output.long_states.value().data());
      worst.compare("global", test::best_reference(golden.file, "", "outputs", "global").values,
                    output.global_states.value().data());
      INFO(worst.where);
      CHECK(worst.value <= 1e-5);
      report.row(entry.path().filename().string(), {worst.value});
      ++found;
    }
  }
  if (found == 0) test::skip("no ETC checkpoints with golden outputs");
}
