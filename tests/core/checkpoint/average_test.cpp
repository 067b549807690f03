#include "etc_core/checkpoint/average.h"

#include <cmath>
#include <functional>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/checkpoint/replaceable.h"
#include "tests/golden/golden_group.h"
#include "tests/support/folders.h"
#include "tests/support/worst.h"

using namespace etc;
using Catch::Contains;

namespace {

// A model directory with one parameter of two rows.
void write_numbers(const std::filesystem::path& folder, const std::vector<float>& numbers,
                   const std::string& name = "weights", std::int64_t layers = 6) {
  ParameterSet parameters;
  parameters.add(name, {2, static_cast<std::int64_t>(numbers.size()) / 2}, {}).value =
      Tensor::from(numbers, {2, static_cast<std::int64_t>(numbers.size()) / 2}, Purpose::weights);
  save_model(folder, {{"model", {{"num_hidden_layers", layers}}}, {"task", {{"name", "translation"}}}}, parameters);
}

std::vector<float> mean_of(const std::vector<std::vector<float>>& models, const test::TemporaryFolder& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& numbers : models) {
    paths.push_back(folder / ("model_" + std::to_string(paths.size())));
    write_numbers(paths.back(), numbers);
  }
  average_models(paths, folder / "mean");
  const Tensor mean = TensorFileReader(folder / "mean/model.safetensors").read_tensor("weights", Purpose::weights);
  return {mean.data(), mean.data() + mean.size()};
}

}  // namespace

TEST_CASE("the mean of checkpoints is that of the formulas", "[checkpoint][golden]") {
  test::for_each_file_with("checkpoint_average/inputs", [](const test::GoldenFile& file) {
    const auto inputs = file.read<float>("checkpoint_average/inputs");
    const auto expected = file.read<double>("checkpoint_average/last3").values;
    const std::size_t size = expected.size();
    const auto worst_of_last = [&](std::size_t count, double falsified) {
      std::vector<std::vector<float>> models;
      for (std::size_t first = inputs.values.size() - count * size; first < inputs.values.size(); first += size) {
        models.emplace_back(inputs.values.begin() + static_cast<std::ptrdiff_t>(first),
                            inputs.values.begin() + static_cast<std::ptrdiff_t>(first + size));
      }
      const test::TemporaryFolder folder;
      const std::vector<float> mean = mean_of(models, folder);
      std::vector<double> changed = expected;
      changed.back() *= falsified;
      return test::worst_difference(changed, mean, 2e-7, 2e-7);
    };
    CHECK(worst_of_last(3, 1) <= 1);
    CHECK(worst_of_last(3, 1.001) > 1);
    CHECK(worst_of_last(3, NAN) > 1);
    CHECK(worst_of_last(2, 1) > 1);
    file.require_all_read("checkpoint_average");
  });
}

TEST_CASE("the mean of one checkpoint, or of equal ones, is that checkpoint", "[checkpoint]") {
  const std::vector<float> numbers{0.1f, -3.3f, 1e-20f, 7e8f, 0, 1 / 3.0f};
  for (const std::size_t count : {1, 3, 7}) {
    const test::TemporaryFolder folder;
    CHECK(mean_of(std::vector(count, numbers), folder) == numbers);
    CHECK(read_file(folder / "mean/config.json") == read_file(folder / "model_0/config.json"));
  }
}

TEST_CASE("configurations are compared by what they mean, and tasks and vocabularies with them", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const std::vector<float> six(6, 1);
  const auto write = [&](const char* name, const std::function<void(Json&)>& change) {
    write_numbers(folder / name, six);
    const std::filesystem::path file = folder / name / "config.json";
    Json config = read_json_file(file);
    change(config);
    test::write_file(file, json_text(config));
  };
  write("plain", [](Json&) {});
  write("default written", [](Json& config) { config["model"]["use_running_mean"] = false; });
  write("other value", [](Json& config) { config["model"]["use_running_mean"] = true; });
  write("other task", [](Json& config) { config["task"]["name"] = "lm"; });
  write("a", [](Json& config) { config["data"]["vocab_sha256"] = "aa"; });
  write("b", [](Json& config) { config["data"]["vocab_sha256"] = "bb"; });
  const auto said = [&](const char* first, const char* second) {
    std::filesystem::remove_all(folder / "mean");
    try {
      return average_models({folder / first, folder / second}, folder / "mean");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK_THAT(said("plain", "default written"), Contains("the mean of 2 models"));
  CHECK_THAT(said("default written", "plain"), Contains("the mean of 2 models"));
  CHECK_THAT(said("plain", "other value"), Contains("model.use_running_mean: expected false as in"));
  CHECK_THAT(said("other value", "plain"), Contains("model.use_running_mean: expected true as in"));
  CHECK_THAT(said("plain", "other task"), Contains("task.name: expected \"translation\" as in"));
  CHECK_THAT(said("a", "b"), Contains("data.vocab_sha256: expected \"aa\" as in") && Contains("got \"bb\""));
}

TEST_CASE("a mean keeps what raw texts are read with", "[checkpoint]") {
  const test::TemporaryFolder folder;
  write_numbers(folder / "a", std::vector<float>(6, 1));
  Json config = read_json_file(folder / "a/config.json");
  config["data"]["vocab_file"] = "vocab.txt";
  test::write_file(folder / "a/config.json", json_text(config));
  test::write_file(folder / "a/vocab.txt", "[PAD]");
  for (const char* name : {"abbrev_types.txt", "ortho_context.tab", "tokenizer.json"})
    test::write_file(folder / "a" / name, name);
  average_models({folder / "a", folder / "a"}, folder / "mean");
  for (const char* name : {"abbrev_types.txt", "ortho_context.tab", "tokenizer.json"})
    CHECK(read_file(folder / "mean" / name) == name);
  CHECK(read_file(folder / "mean/vocab.txt") == "[PAD]");
  CHECK_NOTHROW(require_replaceable(folder / "mean", true));
}

TEST_CASE("checkpoints without a mean are refused by their first difference", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const std::vector<float> six(6, 1);
  write_numbers(folder / "a", six);
  write_numbers(folder / "name", six, "other");
  write_numbers(folder / "shape", std::vector<float>(8, 1));
  write_numbers(folder / "layers", six, "weights", 5);
  write_numbers(folder / "nan", {1, 2, NAN, 4, 5, 6});
  const auto refused = [&](const char* other) {
    try {
      average_models({folder / "a", folder / other}, folder / "mean");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(refused("name"), Contains("weights [2, 3] is missing, which"));
  CHECK_THAT(refused("shape"), Contains("weights: expected [2, 3] as in") && Contains("got [2, 4]"));
  CHECK_THAT(refused("layers"), Contains("model.num_hidden_layers: expected 6 as in") && Contains("got 5"));
  CHECK_THAT(refused("nan"), Contains("weights: expected finite weights, got nan at 2"));
  CHECK_THROWS_WITH(average_models({folder / "a"}, folder / "a"), Contains("is one of the models"));
  CHECK_THROWS_WITH(average_models({}, folder / "mean"), "average: expected at least one model");
  CHECK_FALSE(std::filesystem::exists(folder / "mean"));
}
