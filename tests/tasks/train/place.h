// A folder with small prepared data in which tests of the commands run the program.
#pragma once

#include <algorithm>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/train/tiny_training.h"
#include "tests/tasks/wikihop/examples.h"

namespace etc::test {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// train.h5: 20 readable examples; other.h5: the same with another vocabulary; empty.h5: none.
struct Place {
  TemporaryFolder folder;

  Place() {
    write_readable_dataset(folder / "train.h5", 0, 20);
    write_readable_dataset(folder / "other.h5", 0, 20, "v2");
    write_readable_dataset(folder / "empty.h5", 0, 0);
  }

  Result run(const Words& arguments, const std::string& standard_input = "") const {
    return run_program(arguments, folder.path(), standard_input);
  }

  // The command that trains a tiny model on `data` into folder run; `more` overrides its own options.
  Words training(const Words& more = {}, const std::string& data = "train.h5", const std::string& steps = "2") const {
    Words words = {"train", "--task", "wikihop", "--data", folder / data, "--output", folder / "run"};
    const Words sizes = tiny_training(steps, "64");
    for (std::size_t i = 0; i < sizes.size(); i += 2) {
      if (std::find(more.begin(), more.end(), sizes[i]) == more.end())
        words.insert(words.end(), {sizes[i], sizes[i + 1]});
    }
    return joined(words, more);
  }

  void train(const Words& more = {}) const {
    const Result result = run(training(more));
    INFO(result.err);
    REQUIRE(result.code == 0);
  }
};

}  // namespace etc::test
