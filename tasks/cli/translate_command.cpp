// etc translate: translates every line of a text.
#include <algorithm>
#include <optional>
#include <utility>

#include "data/readers/text_lines.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/progress.h"
#include "etc_core/nn/backends.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/compute_option.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/device_option.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/profile_option.h"
#include "tasks/cli/threads_option.h"
#include "tasks/n_best_file.h"
#include "tasks/output.h"
#include "tasks/prepare/inputs.h"
#include "tasks/registry.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/run_config.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

constexpr const char* kWhere = "etc translate";

struct TranslateCommand {
  std::vector<std::string> models;
  std::string input, prefix, output, vocab, n_best_output;
  std::int64_t n_best = 0;  // 0: the beam size
  std::int64_t window = 2048;
  int threads = 0;  // 0: all processors
  std::string compute = kDefaultCompute, device = kDefaultDevice, memory_limit;
  bool forecast = false;
  ProfileOption profile;
  std::shared_ptr<Json> search = std::make_shared<Json>(Json::object());
};

void check_paths(const TranslateCommand& options) {
  CommandPaths paths(kWhere);
  for (const std::string& model : options.models) paths.reads_model("--model", model);
  paths.reads("--vocab", options.vocab);
  paths.reads_or_standard_input("--input", options.input);
  paths.reads("--prefix", options.prefix);
  paths.writes_or_standard_output("--output", options.output);
  paths.writes_or_standard_output("--n-best-output", options.n_best_output);
  paths.writes("--trace", options.profile.trace);
  paths.check();
}

// Reads a text, some lines at a time, without line ends.
class Lines {
 public:
  explicit Lines(const std::string& file) : where_(data::raw_file_text(file)), stream_(file), text_(stream_) {
    text_.skip_byte_order_mark();
  }

  const std::string& where() const { return where_; }

  // At most this many lines; none at the end.
  std::vector<std::string> next(std::int64_t most) {
    std::vector<std::string> lines;
    try {
      for (std::string line; std::ssize(lines) < most && text_.append(line); line.clear()) {
        lines.emplace_back(data::without_line_end(line));
      }
    } catch (const data::InputFault& fault) {
      fail(where_, "{}", fault.what());
    }
    return lines;
  }

  // The number of lines left, up to damage that next() would report.
  std::int64_t count() {
    std::int64_t lines = 0;
    try {
      for (std::string line; text_.append(line); line.clear()) ++lines;
    } catch (const data::InputFault&) {
    }
    return lines;
  }

 private:
  std::string where_;
  data::ByteStream stream_;
  data::TextLines text_;
};

// The text to translate and, if given, the prefixes of its translations.
class SourceLines {
 public:
  explicit SourceLines(const TranslateCommand& options) : text_(options.input) {
    if (!options.prefix.empty()) prefixes_.emplace(options.prefix);
  }

  const std::string& where() const { return text_.where(); }

  // Throws Error if the number of prefixes differs from the number of lines.
  std::vector<SourceLine> next(std::int64_t most) {
    std::vector<std::string> texts = text_.next(most), prefixes;
    const std::int64_t count = std::ssize(texts);
    if (prefixes_) {
      prefixes = prefixes_->next(std::max<std::int64_t>(1, count));
      if (std::ssize(prefixes) != count) {
        fail(prefixes_->where(), "expected a line for each of {}, which has {} {} lines", text_.where(),
             count == 0 ? "only" : "more than", read_ + (count == 0 ? 0 : std::ssize(prefixes)));
      }
    }
    read_ += count;
    prefixes.resize(texts.size());
    std::vector<SourceLine> lines;
    for (std::size_t i = 0; i < texts.size(); ++i) lines.push_back({std::move(texts[i]), std::move(prefixes[i])});
    return lines;
  }

 private:
  Lines text_;
  std::optional<Lines> prefixes_;
  std::int64_t read_ = 0;
};

// The task that translates.
const TranslatorKind& translator_kind() {
  const auto& entries = task_entries();
  return std::find_if(entries.begin(), entries.end(), [](const TaskEntry& e) { return e.translator.open != nullptr; })
      ->translator;
}

Json answers_of(const std::vector<LineTranslation>& translations, std::int64_t most) {
  Json answers = Json::array();
  for (const LineTranslation& each : translations) {
    if (std::ssize(answers) < most) answers.push_back({{"text", each.text}, {"score", each.score}});
  }
  return answers;
}

// The lines of a file, from which the time left is known; 0 for what can be read only once.
std::int64_t lines_of(const std::string& input) {
  return prepare::is_stream(input) ? 0 : Lines(input).count();
}

void stop_if_asked() {
  if (StopSignal::requested()) throw Interrupted(std::string(kWhere) + ": stopped before the end");
}

void translate_text(LineTranslator& translator, const TranslateCommand& options) {
  const std::int64_t all_lines = lines_of(options.input);
  const StopSignal stop_signal;
  SourceLines text(options);
  std::optional<Output> output;
  if (!options.output.empty()) output.emplace(options.output);
  NBestFile n_best({{}, options.n_best_output, options.n_best > 0 ? options.n_best : translator.most()});
  Progress progress("translate", all_lines, "lines");
  std::int64_t done = 0;
  while (true) {
    const std::vector<SourceLine> lines = text.next(options.window);
    if (lines.empty()) break;
    stop_if_asked();
    TranslationSink sink;
    sink.take = [&](const std::vector<LineTranslation>& found) {
      if (output) output->write((found.empty() ? std::string() : found.front().text) + "\n");
      n_best.add(std::to_string(++done), answers_of(found, n_best.count()));
    };
    sink.searched = [&, before = done](double share) {
      progress.update(before + static_cast<std::int64_t>(share * static_cast<double>(lines.size())));
    };
    translator.translate(lines, done + 1, sink);
    progress.update(done);
  }
  stop_if_asked();
  progress.finish();
  if (output) output->finish();
  n_best.finish();
  const auto share = static_cast<double>(translator.unknown_pieces()) /
                     static_cast<double>(std::max<std::int64_t>(1, translator.pieces()));
  log::info("{}: {} lines, {:.3f} % of {} pieces are not in the vocabulary", text.where(), done, 100 * share,
            translator.pieces());
}

// Prints only how much memory translating the text is expected to take at most.
void print_forecast(const TranslatorRequest& request, const TranslateCommand& options) {
  SourceLines text(options);
  const ProcessMemory memory = translator_kind().forecast(request, [&] { return text.next(options.window); });
  print("expected peak memory, with translations as long as they may be: {}\n", memory_text(memory));
}

void run_translate(TranslateCommand& options) {
  require_one_process(kWhere, "it");
  if (options.forecast && !options.memory_limit.empty()) {
    fail_usage(kWhere, "--forecast says what is taken without a limit: expected either it or --memory-limit");
  }
  if (options.output.empty() && options.n_best_output.empty() && !options.forecast) {
    fail_usage(kWhere, "expected --output FILE (- for standard output)");
  }
  if (options.n_best > 0 && options.n_best_output.empty()) {
    fail_usage(kWhere, "--n-best: expected --n-best-output FILE, where they are written");
  }
  if (options.input == data::kStandardInput && options.prefix == data::kStandardInput) {
    fail_usage(kWhere, "--prefix: expected a file, as --input reads standard input already");
  }
  TranslatorRequest request;
  for (std::string& model : options.models) request.folders.emplace_back(model = model_folder(model));
  check_paths(options);
  if (options.threads > 0) set_thread_count(options.threads);
  const Device device = open_device(options.device).device;
  request.vocab = options.vocab;
  request.options = options.search;
  request.compute = {device, chosen_compute(options.compute, device)};
  request.memory_limit = take_memory_limit(options.memory_limit, device);
  if (options.forecast) return print_forecast(request, options);
  request.before_step = stop_if_asked;
  const auto translator = translator_kind().open(request);
  if (options.n_best > translator->most())
    fail_usage(kWhere, "--n-best: expected at most the beam, {}, got {}", translator->most(), options.n_best);
  Profile profile(options.profile);
  translate_text(*translator, options);
  log_peak_memory(device);
  profile.finish();
}

}  // namespace

void add_translate_command(Program& program) {
  program.add("translate", "translate text, a sentence on each line", [](const Command& command) {
    auto options = std::make_shared<TranslateCommand>();
    command
        .option("--model", options->models,
                "model folder, or a run, whose best checkpoint is taken; several: an ensemble")
        .required();
    command.option("--input", options->input, "text, plain or gzip, one sentence per line; -: standard input")
        .required();
    command.option("--prefix", options->prefix,
                   "text, plain or gzip: line n is the forced beginning of the translation of line n; empty: none");
    command.option("--output", options->output, "the translations, one line per input line; -: standard output");
    command.option("--n-best-output", options->n_best_output,
                   "several translations of each line with their scores, JSON lines; -: standard output");
    command.option("--n-best", options->n_best, "translations per line in --n-best-output [the beam]").at_least(1);
    for (const Field& field : translator_kind().options) {
      const auto take = [given = options->search, &field](const std::vector<std::string>& words) {
        const Json value = option_value(field, words);
        require_meant(field, value, kWhere, field.option_name());
        (*given)[field.name] = value;
      };
      const bool flag = field.kind == FieldKind::boolean;  // with a default, a value left out would not be noticed
      const auto count = flag ? WordCount::at_most_one : WordCount::one;
      const Option option = command.take_words(field.option_name(), count, type_text(field), take, described(field));
      if (!flag) option.show_default(preset_text(field));
    }
    command.option("--window", options->window, "lines that are read at a time; results do not depend on it")
        .at_least(1)
        .show_default();
    command.option("--vocab", options->vocab, "the vocabulary of the model's data, if its folder does not hold it");
    add_compute_option(command, options->compute);
    add_device_option(command, options->device);
    add_memory_option(command, options->memory_limit,
                      "search fewer sentences together if needed, with the same translations");
    command.flag("--forecast", options->forecast, "only print the most memory that translating the text may take");
    add_profile_option(command, options->profile);
    add_threads_option(command, options->threads);
    command.footer(
        "Examples:\n"
        "  etc translate --model run --input test.source --output test.translated\n"
        "  echo \"Ein Haus .\" | etc translate --model run_1 run_2 --input - --output - --beam 8 --length-penalty 1\n\n"
        "An empty line, and one that is not UTF-8, is an empty line again.");
    command.action([options] { run_translate(*options); });
  });
}

}  // namespace etc::cli
