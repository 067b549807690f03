// etc sample: generated records in a data set's original format, with their vocabulary.
#include <memory>

#include "data/sample/wikihop_sample.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/cli/commands.h"

namespace etc::cli {

namespace {

constexpr const char* kExamples = R"(Examples:
  etc sample --task wikihop --records 2000 --seed 1 --output sample
  etc sample --task wikihop --records 2000 --seed 1 --hops 2 --candidates 6 --long-tokens 256 --output sample)";

struct SampleCommand {
  std::string task;
  std::string output;
  data::WikihopSampleOptions wikihop;
};

void run(const SampleCommand& options) {
  if (options.task != "wikihop") {
    fail_usage("etc sample", "unknown task {}{}", options.task, suggestion(options.task, {"wikihop"}));
  }
  data::write_wikihop_sample(options.wikihop, options.output);
  log::info("train.json, dev.json and vocab.txt written to {}", options.output);
}

}  // namespace

void add_sample_command(CLI::App& app) {
  auto options = std::make_shared<SampleCommand>();
  CLI::App* command = app.add_subcommand("sample", "Generate records to try things out with; nothing is downloaded");
  command->add_option("--task", options->task, "wikihop")->required();
  command->add_option("--output", options->output, "Folder for train.json, dev.json and vocab.txt")->required();
  data::WikihopSampleOptions& wikihop = options->wikihop;
  command->add_option("--records", wikihop.records, "Training records; a fifth of it for dev")->capture_default_str();
  command->add_option("--seed", wikihop.seed, "Equal seeds give equal files")->capture_default_str();
  command->add_option("--hops", wikihop.hops, "1: one document answers; 2: two together do")->capture_default_str();
  command->add_option("--candidates", wikihop.candidates, "Choices per record")->capture_default_str();
  command->add_option("--long-tokens", wikihop.long_tokens, "Long input of an example at most")->capture_default_str();
  command->footer(kExamples);
  command->callback([options] { run(*options); });
}

}  // namespace etc::cli
