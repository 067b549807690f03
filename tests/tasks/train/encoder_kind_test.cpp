// The trainer depends only on the interface of an encoder: another kind is trained, evaluated and forecast without
// changes.
#include "etc_core/nn/encoder.h"

#include <algorithm>
#include <cmath>

#include "etc_core/autograd/functions.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/backends.h"
#include "tasks/registry.h"
#include "tasks/train/forecast.h"
#include "tasks/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/run_losses.h"
#include "tests/tasks/wikihop/examples.h"

namespace etc {
namespace {

using test::TemporaryFolder;

// The state of a token is its row of a table after one dense layer: no attention, no labels, no positions.
struct BagConfig final : EncoderConfig {
  BagConfig() {
    vocab_size = 64;
    hidden_size = 16;
    num_hidden_layers = 1;
  }
  const std::vector<std::string>& attention_types() const override {
    static const std::vector<std::string> kNone;
    return kNone;
  }
  void validate() const override {}
  const Fields& fields() const override { return field_list(); }
  Json to_json() const override { return field_list().to_json(*this); }
  std::unique_ptr<EncoderConfig> clone() const override { return std::make_unique<BagConfig>(*this); }
  std::unique_ptr<Encoder> make_encoder(ParameterSet& parameters) const override;
  bool has_global_tokens() const override { return true; }
  std::optional<sparse::LabelOptions> label_options() const override { return {}; }

 private:
  static const FieldList<BagConfig>& field_list() {
    static const FieldList<BagConfig> kFields{{"vocab_size", &BagConfig::vocab_size, "rows of the token table"},
                                              {"hidden_size", &BagConfig::hidden_size, "width of the states"}};
    return kFields;
  }
};

class BagEncoder final : public Encoder {
 public:
  BagEncoder(const BagConfig& config, ParameterSet& parameters) : config_(config) {
    const Initializer fresh{Initializer::Kind::truncated_normal, 0.1f};
    table_ = &parameters.add("bag/table", {config.vocab_size, config.hidden_size}, fresh);
    dense_.parts = {{&parameters.add("bag/kernel", {config.hidden_size, config.hidden_size}, fresh),
                     &parameters.add("bag/bias", {config.hidden_size}, {})}};
  }

  const EncoderConfig& config() const override { return config_; }

  EncoderStates forward(Tape& tape, const EncoderInput& input, const ForwardOptions& options) override {
    REQUIRE(input.labels.l2l.empty());
    EncoderStates states{states_of(tape, input.token_ids, input.long_offsets),
                         states_of(tape, input.global_token_ids, input.global_offsets)};
    if (options.watch) {
      options.watch(0, states.long_states.value(), states.global_states.value(), {});
    }
    return states;
  }

 private:
  Var states_of(Tape& tape, const std::vector<std::int32_t>& ids, const std::vector<std::int64_t>& offsets) const {
    auto rows = std::make_shared<RaggedRows>();
    rows->offsets = offsets;
    rows->sample_ordinals.resize(offsets.size() - 1);
    const Lookup tokens{table_, std::make_shared<const std::vector<std::int32_t>>(ids), "token_ids"};
    return linear(tape, embedding(tape, {.rows = rows, .width = config_.hidden_size, .tokens = tokens}), dense_);
  }
  void release(InferenceTypes) override {}

  const BagConfig config_;
  Parameter* table_;
  Dense dense_;
};

std::unique_ptr<Encoder> BagConfig::make_encoder(ParameterSet& parameters) const {
  return std::make_unique<BagEncoder>(*this, parameters);
}

RunConfig bag_run(const std::filesystem::path& data, std::int64_t steps) {
  Json json = default_config("wikihop");
  overlay_config(
      json,
      {{"model", test::tiny_model().to_json()},
       {"data", {{"train", {data.string()}}}},
       {"training", {{"batch_size", 8}, {"steps", steps}, {"learning_rate", 0.01}, {"log_every", 1}, {"threads", 1}}}},
      "test");
  RunConfig config = run_config_from_json(json, "test");
  BagConfig bag;
  bag.vocab_size = config.model->vocab_size;
  config.model = bag;
  return config;
}

TEST_CASE("an encoder that is no ETC is trained, evaluated and saved by the same trainer", "[tasks]") {
  const TemporaryFolder folder;
  test::write_readable_dataset(folder / "train.h5", 0, 20);
  for (const std::int64_t steps : {1, 10}) {
    RunConfig config = bag_run(folder / "train.h5", steps);
    config.data.eval = {(folder / "train.h5").string()};
    train(config, folder / std::to_string(steps));
  }
  const std::vector<double> losses = test::losses(folder / "10");
  CHECK(losses.size() >= 10);  // including those of the evaluations
  CHECK(std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss) && loss > 0; }));
  CHECK(read_file(folder / "10/metrics.jsonl").find("\"accuracy\"") != std::string::npos);
  const TensorFileReader one(folder / "1/last/model.safetensors"), ten(folder / "10/last/model.safetensors");
  std::vector<float> table_one(static_cast<std::size_t>(one.entry("bag/table").size())), table_ten = table_one;
  one.read_floats("bag/table", table_one.data());
  ten.read_floats("bag/table", table_ten.data());
  CHECK(table_one != table_ten);
}

TEST_CASE("memory of a step is forecast for an encoder of any kind", "[tasks]") {
  register_cpu_backend();
  const TemporaryFolder folder;
  test::write_readable_dataset(folder / "train.h5", 0, 20);
  RunConfig small = bag_run(folder / "train.h5", 1), large = small;
  large.model->hidden_size = 64;
  const auto peak = [](const RunConfig& config) {
    const RunData data = open_run_data(config.data, *make_task(config.task, *config.model));
    return forecast_training(config, data, Device::cpu, 1).buffers.peak;
  };
  CHECK(2 * peak(large) > 3 * peak(small));
}

}  // namespace
}  // namespace etc
