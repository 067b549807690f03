// etc sample: generated records in a data set's original format, with their vocabulary.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "data/sample/hotpotqa_sample.h"
#include "data/sample/nq_sample.h"
#include "data/sample/openkp_sample.h"
#include "data/sample/wikihop_sample.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"

namespace etc::cli {

namespace {

constexpr const char* kExamples = R"(Examples:
  etc sample --task wikihop --records 2000 --seed 1 --output sample
  etc sample --task wikihop --records 2000 --seed 1 --hops 2 --candidates 6 --long-tokens 256 --output sample
  etc sample --task nq --records 2000 --mixed 5 --output sample
  etc sample --task openkp --records 8000 --seed 1 --output sample)";

// One choice a generator leaves to its user.
struct SampleKey {
  std::string key;
  std::int64_t default_value;
  std::string help;
};
using SampleValues = std::map<std::string, std::int64_t>;

struct SampleKind {
  std::string task;
  const char* extension;  // of its train and dev files
  std::vector<SampleKey> keys;
  // Every key has a value. Throws UsageError when values cannot be meant.
  void (*write)(const SampleValues& values, const std::filesystem::path& folder);
};

const SampleKey kRecords{"records", 2000, "training records; a fifth of it for dev"};
const SampleKey kSeed{"seed", 1, "equal seeds give equal files"};

std::uint64_t seed_of(const SampleValues& values) {
  if (values.at("seed") < 0) fail_usage("etc sample", "--seed: expected at least 0, got {}", values.at("seed"));
  return static_cast<std::uint64_t>(values.at("seed"));
}

const std::vector<SampleKind>& sample_kinds() {
  static const std::vector<SampleKind> kKinds = {
      {"wikihop",
       ".json",
       {kRecords,
        kSeed,
        {"hops", 1, "1: one document answers; 2: two together do"},
        {"candidates", 4, "choices per record"},
        {"long_tokens", 0, "long input of an example at most; 0: what its facts need and a little more"}},
       [](const SampleValues& v, const std::filesystem::path& folder) {
         const std::int64_t tokens = v.at("long_tokens") != 0 ? v.at("long_tokens") : v.at("hops") == 2 ? 56 : 48;
         data::write_wikihop_sample({v.at("records"), seed_of(v), v.at("hops"), v.at("candidates"), tokens}, folder);
       }},
      {"hotpotqa",
       ".json",
       {kRecords,
        kSeed,
        {"hops", 1, "1: one document answers; 2: two together do"},
        {"subjects", 4, "subjects per record that could be meant"},
        {"long_tokens", 0, "long input of an example at most; 0: what its facts need and a little more"},
        {"yes_no", 0, "of 10 questions so many are answered by yes or no"}},
       [](const SampleValues& v, const std::filesystem::path& folder) {
         const std::int64_t tokens = v.at("long_tokens") != 0 ? v.at("long_tokens") : v.at("hops") == 2 ? 72 : 40;
         data::write_hotpotqa_sample(
             {v.at("records"), seed_of(v), v.at("hops"), v.at("subjects"), tokens, v.at("yes_no")}, folder);
       }},
      {"nq",
       ".jsonl",
       {kRecords,
        kSeed,
        {"candidates", 4, "choices per record"},
        {"long_tokens", 96, "long input of an example at most"},
        {"mixed", 0, "of 10 questions so many are of other kinds: two answers, long only, none, yes or no"}},
       [](const SampleValues& v, const std::filesystem::path& folder) {
         data::write_nq_sample({v.at("records"), seed_of(v), v.at("candidates"), v.at("long_tokens"), v.at("mixed")},
                               folder);
       }},
      {"openkp",
       ".jsonl",
       {kRecords,
        kSeed,
        {"topics", 4, "topics per page that could be meant"},
        {"long_tokens", 84, "long input of an example at most"}},
       [](const SampleValues& v, const std::filesystem::path& folder) {
         data::write_openkp_sample({v.at("records"), seed_of(v), v.at("topics"), v.at("long_tokens")}, folder);
       }},
  };
  return kKinds;
}

std::vector<std::string> sample_tasks() {
  std::vector<std::string> names;
  for (const SampleKind& kind : sample_kinds()) names.push_back(kind.task);
  return names;
}

std::string option_of(const std::string& key) {
  std::string name = "--" + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

struct SampleCommand {
  std::string task;
  std::string output;
  bool overwrite = false;
  SampleValues given;
};

void check_paths(const SampleCommand& options, const SampleKind& kind) {
  const std::filesystem::path folder = options.output;
  CommandPaths paths("etc sample");
  for (const std::string& name :
       {std::string("vocab.txt"), std::string("train") + kind.extension, std::string("dev") + kind.extension}) {
    paths.writes("--output", folder / name);
    if (!options.overwrite && std::filesystem::exists(folder / name)) {
      fail_usage("etc sample",
                 "{}: exists already: expected a new folder (--overwrite replaces train, dev and vocab.txt)",
                 (folder / name).string());
    }
  }
  paths.check();
}

void run(const SampleCommand& options) {
  const auto& kinds = sample_kinds();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.task == options.task; });
  if (kind == kinds.end()) {
    fail_usage("etc sample", "unknown task {}{}", options.task, suggestion(options.task, sample_tasks()));
  }
  SampleValues values;
  for (const SampleKey& key : kind->keys) values[key.key] = key.default_value;
  for (const auto& [key, value] : options.given) {
    if (!values.contains(key)) fail_usage("etc sample", "{} is no option of task {}", option_of(key), kind->task);
    values[key] = value;
  }
  check_paths(options, *kind);
  kind->write(values, options.output);
  log::info("train and dev records and vocab.txt written to {}", options.output);
}

// The help of one option, which several tasks may have, each with its own default.
std::string help_of(const std::string& key) {
  std::string text;
  std::vector<std::string> defaults;
  for (const SampleKind& kind : sample_kinds()) {
    for (const SampleKey& each : kind.keys) {
      if (each.key != key) continue;
      if (text.empty()) text = each.help;
      defaults.push_back(fmt::format("{} {}", kind.task, each.default_value));
    }
  }
  return fmt::format("{} [{}]", text, fmt::join(defaults, ", "));
}

}  // namespace

void add_sample_command(CLI::App& app) {
  auto options = std::make_shared<SampleCommand>();
  CLI::App* command = app.add_subcommand("sample", "Generate records to try things out with; nothing is downloaded");
  command->add_option("--task", options->task, fmt::format("{}", fmt::join(sample_tasks(), ", ")))->required();
  command->add_option("--output", options->output, "Folder for the train and dev files and vocab.txt")->required();
  command->add_flag("--overwrite", options->overwrite, "replace the files of these names that are there already");
  std::set<std::string> known;
  for (const SampleKind& kind : sample_kinds()) {
    for (const SampleKey& key : kind.keys) {
      if (!known.insert(key.key).second) continue;
      command->add_option_function<std::int64_t>(
          option_of(key.key), [options, name = key.key](std::int64_t value) { options->given[name] = value; },
          help_of(key.key));
    }
  }
  command->footer(kExamples);
  command->callback([options] { run(*options); });
}

}  // namespace etc::cli
