// etc prepare: raw dataset → HDF5.
#include <iterator>
#include <map>
#include <memory>

#include "etc_core/base/byte_size.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/log_receiver.h"
#include "etc_core/base/parallel.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/threads_option.h"
#include "tasks/output.h"
#include "tasks/prepare/forecast.h"
#include "tasks/prepare/learn_splitter.h"
#include "tasks/prepare/learn_vocabulary.h"
#include "tasks/prepare/run.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/registry.h"
#include "tasks/train/run_config.h"

namespace etc::cli {

namespace {

constexpr const char* kExamples = R"(Examples:
  etc prepare --task wikihop --split train --input train.json --vocab vocab.txt --output train.h5
  etc prepare --task wikihop --split dev --input dev.json.gz --vocab spiece.model --splitter punkt:tables \
              --parity reference --output dev.h5
  etc prepare --task wikihop --split train --input train.json --vocab vocab.txt --splitter punkt:learned \
              --learn-splitter --output train.h5
  etc prepare --task hotpotqa --split train --input train.json --vocab vocab.txt --forecast
  unzip -p nq.zip train.jsonl | etc prepare --task nq --split train --input - --vocab vocab.txt --output train.h5
  etc prepare --task pretrain --learn-vocab 30522 --input books.txt news.txt.gz --output vocab.txt
  etc prepare --task pretrain --objective mlm_nsp --split train --input books.txt news.txt.gz --vocab vocab.txt \
              --output train.h5
  etc prepare --task translation --learn-vocab 8000 --source train.en --target train.de --output vocab.bpe
  etc prepare --task translation --split train --source train.en --target train.de --vocab vocab.bpe --output train.h5

Exit code: 0; 1 when more records are rejected than --max-rejects or the run fails; 2 when an input file cannot be read
to its end or the command line is wrong. Every fault has a line in the report.)";

constexpr const char* kMaxLongTokens = "--max-long-tokens";

struct PrepareOptions {
  std::string task;
  std::string vocab;
  std::string config;
  int threads = 0;
  std::int64_t max_rejects = 0;
  std::int64_t learn_vocab = 0;  // pieces; 0: prepare
  bool learn_splitter = false, forecast = false;
  std::vector<std::filesystem::path> sources;  // used instead of run.inputs
  prepare::RunOptions run;
  std::map<std::string, std::string> settings;  // key → the option's text
  std::string max_long_tokens;                  // the same for the task's own key for this length
};

// The value of a setting's option; text that is not meant as a string is JSON.
Json parse_setting(const Field& setting, const std::string& text) {
  const Json usual = setting.default_value();
  if (usual.is_string()) return text;
  // An integer beyond 64 bits would be read as a float: the message shows what was typed.
  try {
    const Json value = parse_json(text, setting.option_name());
    if (!value.is_null() && has_kind(setting, value)) return value;
  } catch (const Error&) {
  }
  const std::string like = (usual.is_number_integer() ? "an integer like " : "a value like ") + json_line(usual);
  fail_usage("etc prepare", "{}: expected {}, got {}", setting.option_name(),
             usual.is_boolean() ? "true or false" : like, text);
}

// Null: the task has no such setting.
const Field* length_setting(const prepare::PreparationKind& kind) {
  for (const char* name : {"long_seq_len", "seq_len", "long_max_length", "max_seq_length"}) {
    if (const Field* setting = kind.settings.find(name)) return setting;
  }
  return nullptr;
}

// The key for the most long tokens of an example: every published preparation has its own name for it.
const Field& length_setting(const prepare::PreparationKind& kind, const std::string& task) {
  if (const Field* setting = length_setting(kind)) return *setting;
  fail_usage("etc prepare", "{} is no option of task {}", kMaxLongTokens, task);
}

// The same for the key in a configuration file.
void take_length_key(Json& settings, const prepare::PreparationKind& kind, const PrepareOptions& options) {
  constexpr const char* kKey = "max_long_tokens";
  if (!settings.is_object() || !settings.contains(kKey)) return;
  const std::string& name = length_setting(kind, options.task).name;
  if (settings.contains(name))
    fail_usage(options.config, "{} and {} are the same setting: expected one of them", kKey, name);
  settings[name] = settings[kKey];
  settings.erase(kKey);
}

std::vector<std::string> tasks_with_setting(const std::string& key) {
  std::vector<std::string> names;
  for (const TaskEntry& entry : task_entries()) {
    if (entry.preparation.settings.find(key) != nullptr) names.push_back(entry.name);
  }
  return names;
}

// Names what a key belongs to if that is not this preparation; keys that nothing has are left to with_overrides().
void refuse_keys_of_others(const Json& settings, const prepare::PreparationKind& kind, const PrepareOptions& options) {
  if (!settings.is_object()) return;
  for (const auto& [key, value] : settings.items()) {
    if (kind.settings.find(key) != nullptr) continue;
    if (default_config(options.task).contains(key)) {
      fail_usage(options.config,
                 "{} is a section of a run's configuration (etc train --config): expected settings of a preparation",
                 key);
    }
    const std::vector<std::string> others = tasks_with_setting(key);
    if (others.empty()) continue;
    fail_usage(options.config, "key {} belongs to task {}, and this is for task {} (expected {})", key,
               fmt::join(others, ", "), options.task, fmt::join(kind.settings.names(), ", "));
  }
}

// Defaults, then the configuration file, then the options.
Json resolve_settings(const prepare::PreparationKind& kind, const PrepareOptions& options) {
  Json settings = kind.settings.defaults();
  if (!options.config.empty()) {
    Json from_file = read_json_file(options.config);
    take_length_key(from_file, kind, options);
    refuse_keys_of_others(from_file, kind, options);
    settings = with_overrides(kind, std::move(settings), from_file, options.config);
  }
  Json given = Json::object();
  for (const auto& [key, text] : options.settings) {
    const Field* setting = kind.settings.find(key);
    if (setting == nullptr) {
      fail_usage("etc prepare", "{} is no option of task {}: it is one of {}", Field{.name = key}.option_name(),
                 options.task, fmt::join(tasks_with_setting(key), ", "));
    }
    given[key] = parse_setting(*setting, text);
  }
  if (!options.max_long_tokens.empty()) {
    const Field& setting = length_setting(kind, options.task);
    if (given.contains(setting.name))
      fail_usage("etc prepare", "{} and {} are the same setting: expected one of them", kMaxLongTokens,
                 setting.option_name());
    given[setting.name] = parse_setting(setting, options.max_long_tokens);
  }
  return with_overrides(kind, std::move(settings), given, "etc prepare");
}

// Whether the output is a device or a FIFO.
bool is_special(const std::filesystem::path& output) {
  std::error_code ignored;
  const auto type = std::filesystem::status(output, ignored).type();
  if (type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::directory) return false;
  return find_output_target(output).kind == OutputTarget::Kind::in_place;
}

void add_inputs(const PrepareOptions& options, CommandPaths& paths) {
  const bool pairs = !options.sources.empty();
  for (const auto& input : options.run.inputs) paths.reads_or_standard_input(pairs ? "--source" : "--input", input);
  for (const auto& target : options.run.targets) paths.reads_or_standard_input("--target", target);
}

// Takes --source and --target for tasks that read parallel texts, --input for the others.
void take_inputs(PrepareOptions& options, const std::string& task, const prepare::PreparationKind& kind) {
  if (kind.inputs == prepare::InputKind::files) {
    if (options.sources.empty() && options.run.targets.empty()) return;
    fail_usage("etc prepare", "--source and --target are no options of task {}: expected --input", task);
  }
  if (!options.run.inputs.empty()) {
    fail_usage("etc prepare", "--input is no option of task {}: expected --source and --target", task);
  }
  if (options.sources.empty()) fail_usage("etc prepare", "--source is required");
  options.run.inputs = options.sources;
  const std::size_t sources = options.sources.size(), targets = options.run.targets.size();
  if (targets == 0 || targets == sources) return;
  fail_usage("etc prepare", "expected a --target file for each --source file, got {} and {}", sources, targets);
}

void require_vocab(const std::filesystem::path& vocab) {
  std::error_code error;
  if (std::filesystem::status(vocab, error).type() != std::filesystem::file_type::not_found) return;
  fail("etc prepare", "--vocab {}: no such file", vocab.string());
}

void check_paths(const PrepareOptions& options, const Json& settings) {
  require_vocab(options.vocab);
  CommandPaths paths("etc prepare");
  add_inputs(options, paths);
  paths.reads("--vocab", options.vocab);
  paths.reads("--config", options.config);
  if (settings.contains("splitter") && settings["splitter"].is_string()) {
    const std::string splitter = settings["splitter"];
    options.learn_splitter ? paths.learns_splitter("--splitter", splitter)
                           : paths.reads_splitter("--splitter", splitter);
  }
  paths.writes("--output", options.run.output);
  paths.writes("--report", options.run.report);
  paths.check();
  if (options.run.inputs.size() > 1 && is_special(options.run.output) && is_special(options.run.report)) {
    fail_usage("etc prepare",
               "finished parts of several inputs are kept beside --output or --report: expected one of these to be a "
               "plain file");
  }
}

// `--learn-vocab`: learns a vocabulary from the inputs' texts; any task with such texts can read them.
void learn_vocabulary(PrepareOptions& options) {
  if (!options.vocab.empty()) fail_usage("etc prepare", "--learn-vocab writes a vocabulary: expected no --vocab");
  if (!options.run.split.empty()) fail_usage("etc prepare", "--learn-vocab writes a vocabulary: expected no --split");
  const std::string task = options.task.empty() ? "pretrain" : options.task;
  const prepare::PreparationKind& kind = preparation_kind(task);
  take_inputs(options, task, kind);
  CommandPaths paths("etc prepare");
  add_inputs(options, paths);
  paths.reads("--config", options.config);
  paths.writes("--output", options.run.output);
  paths.check();
  const Json settings = resolve_settings(kind, options);
  if (kind.learn != nullptr) {
    std::vector<std::filesystem::path> texts = options.run.inputs;
    texts.insert(texts.end(), options.run.targets.begin(), options.run.targets.end());
    kind.learn(texts, settings, options.learn_vocab, options.run.output);
  } else {
    learn_vocabulary(task, kind, settings, options.learn_vocab, options.run.inputs, options.run.output);
  }
  print_summary({options.run.output}, fmt::format("output: {}\n", options.run.output.string()));
}

// Which options are required depends on whether a vocabulary is learned, and whether anything is written.
void check_given(const Command& command, const PrepareOptions& options) {
  const bool learn = options.learn_vocab > 0;
  if (options.forecast && (learn || options.learn_splitter)) {
    fail_usage("etc prepare", "--forecast is of preparing data: expected no {}",
               learn ? "--learn-vocab" : "--learn-splitter");
  }
  const std::pair<const char*, bool> given[] = {{"--task", learn || !options.task.empty()},
                                                {"--split", learn || !options.run.split.empty()},
                                                {"--input", !options.run.inputs.empty() || !options.sources.empty()},
                                                {"--vocab", learn || !options.vocab.empty()},
                                                {"--output", options.forecast || !options.run.output.empty()}};
  for (const auto& [name, there] : given) {
    if (!there) fail_usage("etc prepare", "{} is required", name);
  }
  if (options.run.output == "-") {
    fail_usage("etc prepare", "--output -: {} cannot go to standard output: expected a file name",
               learn ? "a vocabulary" : "an HDF5 file");
  }
  if (options.run.report == "-") {
    fail_usage("etc prepare", "--report -: the summary goes to standard output: expected a file name");
  }
  if (options.forecast && (!options.run.output.empty() || !options.run.report.empty())) {
    fail_usage("etc prepare", "--forecast writes nothing: leave {} out",
               options.run.output.empty() ? "--report" : "--output");
  }
  if (options.run.strict && is_given(command, "--max-rejects"))
    fail_usage("etc prepare", "--max-rejects goes without --strict, which stops at the first rejected record");
}

std::unique_ptr<prepare::Preparation> make_preparation(const PrepareOptions& options, const Json& settings) {
  const auto labels = options.run.labelled ? prepare::Labels::required : prepare::Labels::optional;
  return preparation_kind(options.task).make(settings, options.vocab, labels);
}

// Drops messages while it exists: those caused by truncating the sample say nothing about the data.
struct Silence {
  Silence() { log::to_receiver(nullptr); }
  ~Silence() { log::to_stderr(); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
};

prepare::Forecast quiet_forecast(const prepare::Preparation& preparation, const prepare::RunOptions& options) {
  const Silence silence;
  return prepare::forecast(preparation, options);
}

// Tells what a long preparation is expected to take. The forecast prepares the beginning of the inputs, at most a
// twentieth of the work; short inputs are prepared without one.
void tell_forecast(const prepare::Preparation& preparation, const PrepareOptions& options, const Json& settings) {
  constexpr std::int64_t kLong = 20 * prepare::kSampleBytes;
  const std::vector<std::filesystem::path> files = prepare::files_of(options.run);
  prepare::check_files(preparation, files);
  if (processes().size() > 1 || prepare::readable_bytes(files) < kLong) return;
  try {
    const prepare::Forecast expected = quiet_forecast(*make_preparation(options, settings), options.run);
    log::info("expected peak memory {}; about {:.3g} s, and {} of output", memory_text(expected.memory),
              expected.seconds, byte_size_text(expected.output_bytes));
  } catch (const Interrupted&) {
    throw;
  } catch (const Error&) {
    // The run says what is wrong with the beginning of the input.
  }
}

// Prints only what preparing the inputs is expected to take.
void print_forecast(const PrepareOptions& options, const Json& settings) {
  require_one_process("etc prepare", "--forecast");
  const auto preparation = make_preparation(options, settings);
  const prepare::Forecast expected = quiet_forecast(*preparation, options.run);
  const auto& [sample, all] = std::pair(expected.sample, expected.all);
  print("from the first {} of {} ({} of about {} records):\n", byte_size_text(sample.bytes), byte_size_text(all.bytes),
        sample.records, all.records);
  print("expected peak memory {}\n", memory_text(expected.memory));
  print("expected time {:.3g} s with {} threads\n", expected.seconds, thread_count());
  print("expected output {} examples, {} (on disk while it is made at most {})\n", all.examples,
        byte_size_text(expected.output_bytes), byte_size_text(expected.disk_bytes));
}

void run_prepare(const Command& command, PrepareOptions& options) {
  if (options.threads > 0) set_thread_count(options.threads);
  check_given(command, options);
  if (options.learn_vocab > 0) require_one_process("etc prepare", "--learn-vocab");
  if (options.learn_vocab > 0) return learn_vocabulary(options);
  const prepare::PreparationKind& kind = preparation_kind(options.task);
  take_inputs(options, options.task, kind);
  options.run.labelled = options.run.split != "test";
  const Json settings = resolve_settings(kind, options);
  if (options.forecast) {
    check_paths(options, settings);
    return print_forecast(options, settings);
  }
  if (options.run.report.empty() && is_special(options.run.output)) {
    fail_usage("etc prepare",
               "--output {} is no plain file, so no report can be kept beside it: expected --report FILE",
               options.run.output.string());
  }
  if (options.run.report.empty()) options.run.report = options.run.output.string() + ".rejects.jsonl";
  check_paths(options, settings);
  options.run.processes = &processes();
  if (options.learn_splitter) require_one_process("etc prepare", "--learn-splitter");
  if (options.learn_splitter) learn_splitter(options.task, kind, settings, options.run.inputs);
  const auto preparation = make_preparation(options, settings);
  tell_forecast(*preparation, options, settings);
  const prepare::Counts counts = prepare::run(*preparation, options.run);
  const std::filesystem::path &output = options.run.output, &report = options.run.report;
  print_summary({output, report},
                fmt::format("{}output: {}\nreport: {}\n", counts.summary(), output.string(), report.string()));
  log_peak_memory(Device::cpu);
  prepare::warn_of_left_out(counts, options.run.report);
  if (counts.examples == 0) log::warn("prepare: {} holds no example", options.run.output.string());
  if (counts.fatal) {
    log::warn("prepare: {} is incomplete: train, eval, predict and encode take it with --allow-incomplete only",
              options.run.output.string());
    throw ExitCode(2);
  }
  if (counts.rejected > options.max_rejects) {
    log::warn("prepare: {} rejected records are more than --max-rejects {} (see {})", counts.rejected,
              options.max_rejects, options.run.report.string());
    throw ExitCode(1);
  }
}

// Options of some tasks other than settings: the help of other tasks omits them.
void add_options_of_tasks(const Command& command, const std::shared_ptr<PrepareOptions>& options) {
  const auto of_translation = [](const std::string& help) {
    return std::vector<OptionOfTask>{{"translation", help, "TEXT ...", ""}};
  };
  const std::string source = "instead of --input: source texts, one sentence per line",
                    target = "the translations of --source, line by line";
  command.option("--source", options->sources, "task translation, " + source).of_tasks(of_translation(source));
  command.option("--target", options->run.targets, "task translation: " + target).of_tasks(of_translation(target));
  const std::string learn = "instead of preparing, learn a vocabulary from the input's texts; its number of ";
  command
      .option(
          "--learn-vocab", options->learn_vocab,
          learn + "WordPiece pieces [of task pretrain], merges or words of task translation, or characters of task lm")
      .at_least(1)
      .of_tasks({{"pretrain", learn + "WordPiece pieces", "INT", ""},
                 {"translation", learn + "merges, or of words", "INT", ""},
                 {"lm", learn + "characters", "INT", ""}});
  std::vector<OptionOfTask> lengths, splitters;
  for (const TaskEntry& entry : task_entries()) {
    if (const Field* own = length_setting(entry.preparation))
      lengths.push_back({entry.name, "another name of " + own->option_name(), "INT", ""});
    if (entry.preparation.settings.find("splitter") != nullptr)
      splitters.push_back(
          {entry.name, "learn Punkt tables from the input first, into the folder of --splitter punkt:FOLDER", "", ""});
  }
  command
      .take_text(
          kMaxLongTokens, [options](const std::string& text) { options->max_long_tokens = text; },
          "most long tokens of an example, in every task's preparation: another name of --long-seq-len (wikihop, "
          "hotpotqa), --seq-len (nq, squad, glue), --long-max-length (openkp) and --max-seq-length (pretrain)")
      .group("Settings")
      .of_tasks(lengths);
  command
      .flag("--learn-splitter", options->learn_splitter,
            "learn Punkt tables from the input first and write them to the folder of --splitter punkt:FOLDER")
      .of_tasks(splitters);
}

}  // namespace

void add_prepare_command(Program& program) {
  program.add("prepare", "turn a raw dataset into an HDF5 data set of features", [](const Command& command) {
    auto options = std::make_shared<PrepareOptions>();
    command.footer(kExamples);
    command.option("--task", options->task, fmt::format("{}", fmt::join(task_names(), ", "))).one_of(task_names());
    command.option("--split", options->run.split, "train, dev, or test (where answers may be missing)")
        .one_of({std::begin(prepare::kSplits), std::end(prepare::kSplits)});
    command.option("--input", options->run.inputs, "raw files, plain or gzip, read in this order; -: standard input");
    command.option("--vocab", options->vocab,
                   "WordPiece vocabulary, SentencePiece model (*.model), byte-level BPE (vocab.json), one learned for "
                   "translation (*.bpe, *.words), or characters (*.chars)");
    command.option("--output", options->run.output, "HDF5 file to write, or the vocabulary that is learned");
    command.option("--report", options->run.report,
                   "file for faults, one JSON object per line (default: "
                   "the output's name with .rejects.jsonl)");
    command.option("--config", options->config, "JSON file with the settings below as keys (long_seq_len, …)");
    add_threads_option(command, options->threads);
    command.option("--max-rejects", options->max_rejects, "rejected records that still give exit code 0")
        .show_default()
        .at_least(0);
    command.flag("--strict", options->run.strict, "stop at the first rejected record and write nothing");
    command.flag("--list-truncated", options->run.list_truncated, "list shortened records in the report, too");
    command.flag("--forecast", options->forecast,
                 "only print the expected memory, time and disk space; goes without --output");
    add_options_of_tasks(command, options);
    // Tasks share settings; each option is declared once, and when the command runs the task checks whether the setting
    // is its own.
    std::map<std::string, const Field*> settings;
    std::map<std::string, std::vector<OptionOfTask>> tasks;
    for (const TaskEntry& entry : task_entries()) {
      for (const Field& setting : entry.preparation.settings) {
        settings.try_emplace(setting.name, &setting);
        tasks[setting.name].push_back(key_of_task(entry.name, setting));
      }
    }
    for (const auto& [key, setting] : settings) {
      command
          .take_words(
              setting->option_name(), WordCount::one, type_text(*setting),
              [options, name = key](const std::vector<std::string>& words) { options->settings[name] = words.front(); },
              help_of_tasks(tasks[key]))
          .group("Settings")
          .of_tasks(tasks[key]);
    }
    command.task_first(task_names());
    command.action([command, options] { run_prepare(command, *options); });
  });
}

}  // namespace etc::cli
