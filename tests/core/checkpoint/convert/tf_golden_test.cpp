// Golden TensorFlow checkpoints of ETC: after conversion they have the weights of the golden file beside them and give
// the same outputs.
#include "etc_core/checkpoint/convert/converted_model.h"
#include "etc_core/checkpoint/convert/tf_etc.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/tensor_values.h"
#include "tests/golden/golden_case.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::convert;
namespace fs = std::filesystem;

TEST_CASE("golden ETC checkpoints give the golden weights and outputs", "[convert][golden]") {
  register_cpu_backend();
  test::GoldenReport report("ETC checkpoints, worst difference", {"outputs"});
  const auto checkpoints = test::golden_checkpoints("etc_config.json");
  if (checkpoints.empty()) return test::skip("no ETC checkpoints with golden outputs");
  for (const fs::path& checkpoint : checkpoints) {
    CAPTURE(checkpoint.string());
    const test::GoldenCase golden(test::golden_file_of(checkpoint));
    test::require_golden_config(golden.file, checkpoint / "etc_config.json");
    const EtcConfig config =
        etc_config_from_json(read_json_file(checkpoint / "etc_config.json"), "etc_config.json", UnknownKeys::warn);
    const test::TemporaryFolder folder;
    {
      ParameterSet parameters;
      TfEtcExtras extras;
      const auto source = open_tensors(checkpoint);
      const ConversionReport done = read_tf_etc(*source, config, {true, true}, parameters, extras);
      // Heads of unknown tasks are left out, but nothing of the encoder or its optimiser.
      for (const auto& left : done.left_out) {
        CAPTURE(left.name, left.why);
        CHECK(left.why == "unknown");
        CHECK(!golden.file.has("weights/" + left.name.substr(0, left.name.find("/adam_"))));
      }
      REQUIRE(extras.global_step == 1234);
      REQUIRE(done.copied.size() + done.left_out.size() + 1 == source->tensors().size());
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
    golden.file.require_all_read("weights");
    Tape tape(Recording::off);
    const EncoderStates output = encoder.forward(tape, golden.input(), {});
    test::Worst worst;
    test::compare_output(worst, golden.file, "long", test::values_of(output.long_states.value()));
    test::compare_output(worst, golden.file, "global", test::values_of(output.global_states.value()));
    INFO(worst.where);
    CHECK(worst.value <= 1e-5);
    report.row(checkpoint.filename().string(), {worst.value});
  }
}
