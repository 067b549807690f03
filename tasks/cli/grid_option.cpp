#include "tasks/cli/grid_option.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/words.h"
#include "tasks/train/config_keys.h"

namespace etc::cli {

namespace {

constexpr std::int64_t kMostSeeds = 10'000;

// Keys that a grid may vary: those with a single value. Data are not settings, and seeds have an option of their own.
bool may_vary(const ConfigKey& key) {
  return key.section != "data" && key.field.kind != FieldKind::texts && key.path() != "training.seed" &&
         key.path() != "task.name" && key.path() != "model.kind";
}

const ConfigKey& key_of(const std::string& given) {
  std::string name = given;
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) {
    if (!may_vary(key)) continue;
    if (name == key.field.name || name == key.path()) return key;
    names.push_back(key.field.name);
  }
  if (name == "seed" || name == "training.seed") fail_usage("--grid", "seeds are not a setting: use --seeds N");
  fail_usage("--grid", "there is no key {} with one value{}", given, suggestion(name, names));
}

std::vector<std::string> split_commas(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

GridAxis axis_of(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals + 1 == word.size()) {
    fail_usage("--grid", "expected KEY=VALUE,VALUE…, got {}", word);
  }
  const ConfigKey& key = key_of(word.substr(0, equals));
  GridAxis axis{key.section, key.field.name, {}, {}};
  for (std::string value : split_commas(word.substr(equals + 1))) {
    axis.values.push_back(option_value(key.field, {value}));
    std::replace(value.begin(), value.end(), '/', '_');  // because it becomes a folder name
    if (std::find(axis.words.begin(), axis.words.end(), value) != axis.words.end()) {
      fail_usage("--grid", "{} is there twice for {}", value, axis.name);
    }
    axis.words.push_back(value);
  }
  return axis;
}

}  // namespace

std::shared_ptr<GridOption> add_grid_option(const Command& command) {
  auto option = std::make_shared<GridOption>();
  const auto take = [option](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      GridAxis axis = axis_of(word);
      for (const GridAxis& other : option->grid.axes) {
        if (other.section == axis.section && other.name == axis.name)
          fail_usage("--grid", "{} is there twice", axis.name);
      }
      option->grid.axes.push_back(std::move(axis));
    }
    option->given = true;
  };
  command.take_words("--grid", WordCount::any, "KEY=VALUE,…", take,
                     "one run for each choice of values, KEY of any section but data; --output holds a folder each");
  const auto take_seeds = [option](std::int64_t seeds) {
    option->grid.seeds = seeds;
    option->given = true;
  };
  command.take_integer("--seeds", take_seeds, "runs of each setting, with --seed, --seed + 1, …")
      .at_least(1)
      .at_most(kMostSeeds);
  return option;
}

}  // namespace etc::cli
