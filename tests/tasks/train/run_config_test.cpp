// Configurations: defaults, files, options, and what is refused.
#include "tasks/train/run_config.h"

#include <limits>
#include <set>

#include "etc_core/base/error.h"
#include "tasks/registry.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace {

using etc::ConfigKey;
using etc::Field;
using etc::Json;

const Field& key_of(const std::string& option) {
  for (const ConfigKey& key : etc::config_keys()) {
    if (key.field.option_name() == option) return key.field;
  }
  FAIL("no key has the option " << option);
  throw etc::Error("unreachable");
}

std::string message_of(const Json& options, const std::filesystem::path& file = {}) {
  try {
    etc::resolve_config(file.empty() ? std::nullopt : std::optional(file), options, nullptr);
  } catch (const etc::UsageError& error) {
    return error.what();
  }
  return "";
}

Json minimal() {
  return {{"task", {{"name", "wikihop"}}}, {"model", {{"vocab_size", 100}}}};
}

TEST_CASE("every configuration key has a help text and an option of its own", "[tasks]") {
  std::set<std::string> options;
  for (const ConfigKey& key : etc::config_keys()) {
    INFO(key.path());
    CHECK(!key.field.help.empty());
    CHECK(options.insert(key.field.option_name()).second);
  }
  CHECK(options.count("--learning-rate") == 1);
  CHECK(options.count("--task") == 1);
  CHECK(options.count("--data") == 1);
  CHECK(options.count("--eval-data") == 1);
  CHECK(options.count("--vocab") == 1);
}

TEST_CASE("options win over the file and the file over the defaults", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  etc::test::write_file(folder / "c.json",
                        R"({"task": {"name": "wikihop", "label_smoothing": 0.1},
                                 "model": {"vocab_size": 50, "hidden_size": 24},
                                 "training": {"batch_size": 8, "learning_rate": 1}})");
  const auto config = etc::resolve_config(folder / "c.json", {{"training", {{"batch_size", 4}}}}, nullptr);
  CHECK(config.training.batch_size == 4);
  CHECK(config.training.learning_rate == 1);
  CHECK(config.training.warmup_proportion == 0.1);
  CHECK(config.model->hidden_size == 24);
  CHECK(config.task.at("label_smoothing") == 0.1);
  CHECK(config.task.at("add_final_layer") == true);

  SECTION("what a checkpoint says of the model lies between defaults and file") {
    std::vector<std::filesystem::path> asked;
    const etc::CheckpointModel checkpoint = [&](const std::filesystem::path& source) {
      asked.push_back(source);
      return Json{{"hidden_size", 36}, {"num_hidden_layers", 3}, {"vocab_size", 7}};
    };
    CHECK(etc::resolve_config(folder / "c.json", Json::object(), checkpoint).model->num_hidden_layers == 12);
    CHECK(asked.empty());  // called only if a checkpoint is named
    const auto started = etc::resolve_config(folder / "c.json", {{"training", {{"init_from", "source"}}}}, checkpoint);
    CHECK(asked == std::vector<std::filesystem::path>{"source"});
    CHECK(started.model->hidden_size == 24);
    CHECK(started.model->num_hidden_layers == 3);
    CHECK(started.model->vocab_size == 50);
  }
  SECTION("the resolved configuration is complete and reads back equal") {
    const Json written = config.to_json();
    CHECK(etc::run_config_from_json(written, "again").to_json() == written);
    std::size_t keys = 0;
    for (const auto& section : written) keys += section.size();
    std::size_t expected = etc::task_kind("wikihop").keys.size() + 1;  // the task's own keys and its name
    for (const ConfigKey& key : etc::config_keys()) {
      const bool of_kind = !key.kinds.empty() && key.kinds.front().kind == "etc";
      expected += key.section == "model" ? of_kind : key.section != "task";
    }
    CHECK(keys == expected);
  }
}

TEST_CASE("defaults of training are those published for the task", "[tasks]") {
  const auto training = [](const std::string& task) { return etc::default_config(task)["training"]; };
  CHECK(training("wikihop")["weight_decay"] == 0.1);
  CHECK(training("wikihop")["learning_rate"] == 4e-5);
  CHECK(training("wikihop")["epochs"] == 15);
  for (const auto& [task, epochs] : {std::pair("hotpotqa", 9), std::pair("nq", 3), std::pair("openkp", 2)}) {
    CAPTURE(task);
    CHECK(training(task)["weight_decay"] == 0.01);
    CHECK(training(task)["learning_rate"] == 5e-5);
    CHECK(training(task)["batch_size"] == 64);
    CHECK(training(task)["epochs"] == epochs);
  }
  for (const etc::TaskEntry& entry : etc::task_entries()) {
    CAPTURE(entry.name);
    // The keys are known and of their kind.
    CHECK_NOTHROW(etc::training_fields().read(training(entry.name), "config", "training."));
    if (entry.name != "wikihop") CHECK(training(entry.name)["weight_decay"] == 0.01);
  }
}

TEST_CASE("an unknown configuration key is refused with a suggestion", "[tasks]") {
  const etc::test::TemporaryFolder folder;
  const auto path = folder / "run.json";
  const auto message = [&](const char* text) {
    etc::test::write_file(path, text);
    return message_of(minimal(), path);
  };
  CHECK(message(R"({"training": {"lerning_rate": 1}})") ==
        "config: " + path.string() + ": unknown key training.lerning_rate (did you mean training.learning_rate?)");
  CHECK(message(R"({"trainig": {}})") ==
        "config: " + path.string() + ": unknown section trainig (did you mean training?)");
  CHECK(message(R"({"task": {"sf_threshold": 0.5}})") ==
        "config: " + path.string() +
            ": key task.sf_threshold belongs to task hotpotqa, and this run is for task wikihop "
            "(--task)");
  CHECK(message(R"({"model": {"hidden_siz": 1}})").find("(did you mean model.hidden_size?)") != std::string::npos);
  CHECK(message(R"({"training": {"batch_size": "8"}})").find("training.batch_size: expected an integer, got \"8\"") !=
        std::string::npos);
  CHECK(message(R"({"training": 3})").find("training: expected an object") != std::string::npos);
  CHECK(message(R"([])").find("expected an object with the sections") != std::string::npos);
  CHECK(message(R"({"task": []})").find("task: expected an object") != std::string::npos);
}

TEST_CASE("values that cannot be meant are refused by name", "[tasks]") {
  const auto with = [](const char* section, const char* key, const Json& value) {
    Json options = minimal();
    options[section][key] = value;
    return message_of(options);
  };
  CHECK(with("training", "batch_size", 0) == "config: training.batch_size: expected an integer of at least 1, got 0");
  CHECK(with("training", "batch_size", std::numeric_limits<std::uint64_t>::max()) ==
        "config: options: training.batch_size: expected an integer, got 18446744073709551615");
  CHECK(with("training", "resize_relative", true) ==
        "config: training.resize_relative: expected init_from beside it, whose tables are to be cut or extended");
  CHECK(with("training", "seed", -1) == "config: options: training.seed: expected an integer of at least 0, got -1");
  CHECK(with("training", "warmup_proportion", 1.5) ==
        "config: training.warmup_proportion: expected a number from 0 to 1, got 1.5");
  for (const double small : {0.0, 1e-40}) {
    CHECK(with("training", "adam_epsilon", small)
              .find("config: training.adam_epsilon: expected a number from 1e-37 to below 1, got ") == 0);
  }
  CHECK(with("training", "threads", 4294967297) ==
        "config: training.threads: expected an integer from 0 to 4096, got 4294967297");
  CHECK(with("training", "epochs", 0) == "config: training.epochs: expected a number above 0, got 0");
  CHECK(with("training", "save_every", 0) ==
        "config: training.save_every: expected steps, an integer of at least 1, or a time such as \"15min\", got 0");
  CHECK(with("training", "save_every", "15 minutes") ==
        "config: training.save_every: expected a time such as 90s, 15min or 2h, got \"15 minutes\"");
  CHECK(with("training", "device", "cpuu").find("config: training.device: expected cpu, ") == 0);
  CHECK(with("training", "deterministic", "no").find("training.deterministic: expected run or strict, got no") !=
        std::string::npos);
  CHECK(with("data", "train", "a.h5") == "config: options: data.train: expected a list of strings, got \"a.h5\"");
  CHECK(with("task", "name", 3) == "config: task.name: expected a string, got 3");
  CHECK(with("training", "optimizer", "adam").find("(did you mean adamw?)") != std::string::npos);
  CHECK(with("training", "compute", "int8").find("training.compute: expected fp32, bf16 or auto, got int8") !=
        std::string::npos);
  CHECK(with("task", "name", "wikihopp").find("(did you mean wikihop?)") != std::string::npos);
  CHECK(with("model", "vocab_size", 0).find("vocab_size") != std::string::npos);
  CHECK(with("model", "relative_vocab_size", 5).find("relative_vocab_size") != std::string::npos);
  CHECK(message_of({{"model", {{"vocab_size", 5}}}}).find("no task is named") != std::string::npos);
}

TEST_CASE("a path that JSON cannot keep is refused by its key", "[tasks]") {
  const std::string path = "d\xffta.h5";
  for (const char* key : {"train", "eval"}) {
    Json options = minimal();
    options["data"][key] = {path};
    CHECK_THAT(message_of(options), Catch::Contains(std::string("config: data.") + key + ": expected a path in UTF-8"));
  }
  Json options = minimal();
  options["training"]["init_from"] = path;
  CHECK_THAT(message_of(options), Catch::Contains("training.init_from: expected a path in UTF-8"));
}

TEST_CASE("option words become values of the key's kind", "[tasks]") {
  CHECK(etc::option_value(key_of("--batch-size"), {"8"}) == 8);
  CHECK(etc::option_value(key_of("--learning-rate"), {"4e-5"}) == 4e-5);
  CHECK(etc::option_value(key_of("--learning-rate"), {"1"}) == 1);
  CHECK(etc::option_value(key_of("--use-residual-attention"), {}) == true);
  CHECK(etc::option_value(key_of("--use-residual-attention"), {"false"}) == false);
  CHECK(etc::option_value(key_of("--relative-vocab-size"), {"none"}).is_null());
  CHECK(etc::option_value(key_of("--data"), {"a.h5", "b.h5"}) == Json({"a.h5", "b.h5"}));
  CHECK(etc::option_value(key_of("--init-from"), {"7"}) == "7");
  CHECK(etc::option_value(key_of("--save-every"), {"7"}) == 7);
  CHECK(etc::option_value(key_of("--save-every"), {"15min"}) == "15min");
  for (const char* word : {"x", "", "1.5", "true", "[1]"}) {
    CHECK_THROWS_AS(etc::option_value(key_of("--batch-size"), {word}), etc::UsageError);
  }
}

}  // namespace
