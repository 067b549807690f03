#include "tasks/prepare/run.h"

#include <algorithm>
#include <iterator>

#include "etc_core/base/error.h"
#include "tasks/library/entry.h"
#include "tasks/registry.h"

namespace longetc {

namespace {

namespace fs = std::filesystem;

etc::prepare::RunOptions run_options(const PrepareOptions& options) {
  etc::prepare::RunOptions run;
  run.inputs.assign(options.inputs.begin(), options.inputs.end());
  run.targets.assign(options.targets.begin(), options.targets.end());
  run.output = options.output;
  run.report = options.report.empty() ? options.output + ".rejects.jsonl" : options.report;
  run.split = options.split;
  run.labelled = options.split != "test";
  run.strict = options.strict;
  return run;
}

void require_given(const PrepareOptions& options, const etc::prepare::PreparationKind& kind) {
  for (const auto& [name, there] :
       {std::pair("inputs", !options.inputs.empty()), std::pair("vocabulary", !options.vocabulary.empty()),
        std::pair("output", !options.output.empty())}) {
    if (!there) etc::fail_usage("prepare", "{}: expected a value, got none", name);
  }
  if (std::find(std::begin(etc::prepare::kSplits), std::end(etc::prepare::kSplits), options.split) ==
      std::end(etc::prepare::kSplits)) {
    etc::fail_usage("prepare", "split: expected one of {}, got \"{}\"", fmt::join(etc::prepare::kSplits, ", "),
                    options.split);
  }
  const bool pairs = kind.inputs == etc::prepare::InputKind::parallel_texts;
  if (options.targets.size() != (pairs ? options.targets.empty() ? 0 : options.inputs.size() : 0))
    etc::fail_usage("prepare", "targets: expected {}, got {}", pairs ? "one of each input" : "none in this task",
                    options.targets.size());
}

// No output file may be an input, or the other output.
void require_apart(const PrepareOptions& options, const etc::prepare::RunOptions& run) {
  std::vector<std::string> read = options.inputs;
  read.insert(read.end(), options.targets.begin(), options.targets.end());
  read.push_back(options.vocabulary);
  std::error_code unknown;  // one of two files does not exist
  for (const fs::path& written : {run.output, run.report}) {
    for (const std::string& input : read) {
      if (fs::equivalent(written, input, unknown))
        etc::fail_usage("prepare", "{} would be written over {}: expected another output", written.string(), input);
    }
  }
  const auto place = [&](const fs::path& file) { return fs::weakly_canonical(fs::absolute(file), unknown); };
  const fs::path output = place(run.output);
  const bool keeps_nothing = fs::is_character_file(output, unknown);  // /dev/null
  if (!output.empty() && !keeps_nothing && output == place(run.report))
    etc::fail_usage("prepare", "report {}: expected another file than the output", run.report.string());
}

}  // namespace

PrepareReport prepare(const PrepareOptions& options, const Progress& progress) {
  return guarded_long(progress, [&](LongCall&) {
    const etc::prepare::PreparationKind& kind = etc::preparation_kind(options.task);
    require_given(options, kind);
    const etc::Json given = etc::parse_json(options.settings, "prepare: settings");
    const etc::Json settings = etc::prepare::with_overrides(kind, kind.settings.defaults(), given, "prepare: settings");
    const etc::prepare::RunOptions run = run_options(options);
    require_apart(options, run);
    const auto labels = run.labelled ? etc::prepare::Labels::required : etc::prepare::Labels::optional;
    const auto preparation = kind.make(settings, options.vocabulary, labels);
    const etc::prepare::Counts counts = etc::prepare::run(*preparation, run);
    return PrepareReport{counts.records, counts.examples, counts.rejected,
                         counts.dropped, !counts.fatal,   counts.summary()};
  });
}

}  // namespace longetc
