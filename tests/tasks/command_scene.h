// A folder and the program run in it, for tests that run the commands of a task one after the other.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/train/tiny_training.h"

namespace etc::test {

class CommandScene {
 public:
  explicit CommandScene(std::string task) : task_(std::move(task)) {}

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Result try_run(const Words& arguments, const std::string& input = "") const {
    return run_program(arguments, folder_.path(), input);
  }

  // What the command writes to standard output; it must succeed.
  std::string run(const Words& arguments, const std::string& input = "") const {
    const Result result = try_run(arguments, input);
    INFO(arguments[0] << ": " << result.err);
    REQUIRE(result.code == 0);
    return result.out;
  }
  void prepare(const std::string& split, const std::string& input, const std::string& vocab, const std::string& output,
               const Words& more = {}) const {
    Words words = {"prepare", "--task",  task_, "--split",  split,       "--input",
                   input,     "--vocab", vocab, "--output", path(output)};
    words.insert(words.end(), more.begin(), more.end());
    run(words);
  }

  // Trains on train.h5 into folder run, with evaluations on dev.h5.
  void train(const std::string& vocab, const Words& model) const {
    Words words = {"train",        "--task",  task_, "--data",   path("train.h5"), "--eval-data",
                   path("dev.h5"), "--vocab", vocab, "--output", path("run")};
    words.insert(words.end(), model.begin(), model.end());
    run(words);
  }

 private:
  std::string task_;
  TemporaryFolder folder_;
};

// The number after `name` in lines of the form "name value".
inline double value_of(const std::string& lines, const std::string& name) {
  std::istringstream stream(lines);
  std::string key;
  double value = 0;
  while (stream >> key >> value) {
    if (key == name) return value;
  }
  FAIL("no " << name << " in " << lines);
  return 0;
}

// Options of a model that trains in seconds, for records of any vocabulary.
inline Words small_model(const std::string& steps = "20") {
  const std::vector<std::pair<std::string, std::string>> values = {
      {"vocab-size", "30522"},       {"hidden-size", "32"},
      {"num-hidden-layers", "2"},    {"num-attention-heads", "2"},
      {"intermediate-size", "64"},   {"local-radius", "16"},
      {"batch-size", "4"},           {"relative-pos-max-distance", "8"},
      {"relative-vocab-size", "20"}, {"steps", steps}};
  Words words;
  for (const auto& [name, value] : values) words.insert(words.end(), {"--" + name, value});
  return words;
}

}  // namespace etc::test
