// The configuration keys that each position method reads: keys reported as unread have no effect, the others have.
#include <functional>

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tests/core/nn/small_dense.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace etc::test {
namespace {

using Catch::Matchers::Contains;
using Method = PositionConfig::Method;

struct Key {
  const char* name;
  std::function<void(DenseConfig&)> change;
};

// A non-default value for every key.
const Key kKeys[] = {
    {"relative_clip", [](DenseConfig& c) { c.relative_clip = 6; }},
    {"relative_sharing", [](DenseConfig& c) { c.relative_sharing = PositionConfig::Sharing::model; }},
    {"relative_init", [](DenseConfig& c) { c.relative_init = PositionConfig::TableInit::ones; }},
    {"relative_init", [](DenseConfig& c) { c.relative_init = PositionConfig::TableInit::normal; }},
    {"relative_buckets", [](DenseConfig& c) { c.relative_buckets = 16; }},
    {"relative_max_distance", [](DenseConfig& c) { c.relative_max_distance = 24; }},
    {"xl_content_bias", [](DenseConfig& c) { c.xl_content_bias = false; }},
    {"xl_position_bias", [](DenseConfig& c) { c.xl_position_bias = false; }},
};

DenseConfig with_method(Method method) {
  DenseConfig config = small_dense();
  config.max_absolute_position_embeddings = method == Method::none ? 64 : 0;
  config.relative_positions = method;
  return config;
}

// The effects of a configuration: initial parameters, and states with non-zero biases.
struct Outcome {
  std::vector<std::pair<std::string, std::vector<float>>> parameters;
  std::vector<float> states;

  explicit Outcome(const DenseConfig& config) {
    SmallDense model(config);
    for (const auto& parameter : model.parameters.all()) {
      float* const values = parameter->value.data();
      parameters.emplace_back(parameter->name, std::vector<float>(values, values + parameter->value.size()));
      for (std::int64_t i = 0; i < parameter->value.size(); ++i) values[i] += 0.05f * static_cast<float>(i % 5);
    }
    const Tensor result = model.states(sequences({45, 3}));
    states.assign(result.data(), result.data() + result.size());
  }
  bool operator==(const Outcome&) const = default;
};

TEST_CASE("a method's unread keys are those that change neither its parameters nor its states", "[nn]") {
  for (const Method method : kPositionMethods) {
    const DenseConfig usual = with_method(method);
    CHECK(usual.unread_keys().empty());
    const Outcome expected(usual);
    std::map<std::string, bool> changes;  // whether any value of the key has an effect
    for (const Key& key : kKeys) {
      DenseConfig config = usual;
      key.change(config);
      changes[key.name] |= Outcome(config) != expected;
      CAPTURE(json_line(config.to_json()));
      CHECK(config.unread_keys().size() <= 1);
    }
    for (const Key& key : kKeys) {
      DenseConfig config = usual;
      key.change(config);
      CAPTURE(json_line(config.to_json()), key.name);
      CHECK(config.unread_keys() ==
            (changes[key.name] ? std::vector<std::string>() : std::vector{std::string(key.name)}));
    }
  }
}

TEST_CASE("unread keys are warned of by name, value and method", "[nn]") {
  const TemporaryFolder folder;
  log::also_to_file(folder / "log.txt");
  DenseConfig config = with_method(Method::t5);
  config.relative_clip = 16;
  config.xl_position_bias = false;
  warn_of_unread_keys(config);
  CHECK_THAT(read_file(folder / "log.txt"),
             Contains("relative_clip: 16 changes nothing: relative_positions t5 does not read it") &&
                 Contains("xl_position_bias: false changes nothing: relative_positions t5 does not read it"));
}

}  // namespace
}  // namespace etc::test
