// etc analyze: what a model attends to, as numbers and pictures.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/byte_size.h"
#include "etc_core/base/device_state.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "tasks/analyze/document.h"
#include "tasks/analyze/earlier_analysis.h"
#include "tasks/analyze/means.h"
#include "tasks/analyze/memory.h"
#include "tasks/analyze/plots.h"
#include "tasks/analyze/result_arrays.h"
#include "tasks/analyze/result_tables.h"
#include "tasks/analyze/summary.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/device_option.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/refused_options.h"
#include "tasks/cli/threads_option.h"
#include "tasks/output.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/run_config.h"

namespace etc::cli {

namespace {

namespace fs = std::filesystem;
constexpr const char* kWhere = "etc analyze";

constexpr const char* kExamples = R"(Examples:
  etc analyze --model run/best --data dev.h5 --examples 512 --output analysis
  etc analyze --model run/best --data dev.h5 --groups all cls question --all-heads --output analysis
  etc analyze --model run/best --data dev.h5 --document 3 --output page.html
  etc analyze --model run/best --input dev.json --document 3 --output page.html
  etc analyze --model post_ln/best --compare realformer/best --data dev.h5 --output comparison

Entropies are in nats, divergences in bits. The folder gets summary.json, analysis.h5 (arrays [layers, heads, groups, ...]),
CSV tables and pictures (SVG); with --compare each model has a folder of its own in it, by its number.)";

struct AnalyzeOptions {
  std::string model, output, base = "nats";
  std::vector<std::string> compare, data, groups;
  analyze::AnalysisRequest request;
  std::int64_t document = -1;  // draw the page of this example instead
  std::string input, vocab;
  std::int64_t part = 0, top = 16;
  std::vector<std::string> layers;  // numbers
  std::string memory_limit;
  bool overwrite = false, forecast = false;
  int threads = 0;
};

// Throws Error unless the models can be compared.
void check_comparison(const std::vector<fs::path>& folders) {
  const ModelConfig first = read_encoder_config(folders.front());
  for (const fs::path& folder : folders) {
    const ModelConfig other = read_encoder_config(folder);
    if (other->num_attention_heads == first->num_attention_heads) continue;
    fail(kWhere, "--compare {}: expected {} heads as {} has, got {}", folder.string(), first->num_attention_heads,
         folders.front().string(), other->num_attention_heads);
  }
}

void check_paths(const AnalyzeOptions& options, const std::vector<fs::path>& folders) {
  CommandPaths paths(kWhere);
  paths.reads("--data", options.data);
  for (const fs::path& folder : folders) paths.reads_model("--model", folder);
  paths.replaces_folder("--output", options.output);
  paths.check();
}

void write_model(const analyze::ModelAnalysis& model, const fs::path& folder, analyze::LogBase base) {
  fs::create_directories(folder);
  analyze::write_h5(model, folder / "analysis.h5");
  analyze::write_csv(model, folder);
  analyze::write_plots(model, folder, base);
  analyze::write_relative_plots(model, folder);
}

void write_all(const std::vector<analyze::ModelAnalysis>& models, const AnalyzeOptions& options) {
  const auto base = options.base == "bits" ? analyze::LogBase::bits : analyze::LogBase::nats;
  AtomicFolder output(options.output, OldFiles::drop);
  if (models.size() == 1) {
    write_model(models.front(), output.path(), base);
  } else {
    std::vector<std::string> names;
    for (std::size_t n = 0; n < models.size(); ++n) {
      const fs::path folder = models[n].folder.lexically_normal();
      const std::string last = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
      const std::string number = std::to_string(n + 1);
      names.push_back(number + " " + (folder.has_parent_path() ? folder.parent_path().filename().string() + "/" : "") +
                      last);
      write_model(models[n], output.path() / ("model_" + number), base);
    }
    analyze::write_comparison(models, names, output.path());
  }
  write_file_atomically(output.path() / analyze::kSummaryFile, json_text(analyze::summary_of(models)));
  analyze::require_replaceable(options.output, options.overwrite);  // it may have got files since the start
  output.commit();
}

void print_table(const analyze::ModelAnalysis& model) {
  print("{}: {} examples, {} tokens, residual scores {}; below: queries of group {}\n", model.folder.string(),
        model.examples, model.tokens, model.residual, model.groups.front());
  for (const std::string& note : analyze::notes_of(model)) print("{}\n", note);
  for (const analyze::OperatorResults& of : model.operators) {
    print("{:>10} {:>6} {:>16} {:>12} {:>12} {:>10}\n", of.name, "layer", "median entropy", "its variance",
          "median jsd", "one-hot");
    for (std::int64_t layer = 0; layer < of.layers; ++layer) {
      const double jsd = analyze::over_heads(of, analyze::Quantity::jsd, layer, analyze::median_of);
      print("{:>10} {:>6} {:>16.3f} {:>12.3f} {:>12} {:>10.3f}\n", "", layer,
            analyze::over_heads(of, analyze::Quantity::entropy, layer, analyze::median_of),
            analyze::over_heads(of, analyze::Quantity::entropy, layer, analyze::variance_of),
            layer > 0 ? fmt::format("{:.3f}", jsd) : "-",
            analyze::over_heads(of, analyze::Quantity::one_hot, layer, analyze::mean_of));
    }
    if (of.unseen > 0) print("{} queries without a visible key were skipped\n", of.unseen);
  }
  if (model.gradients.examples == 0) return;
  print("gradient of the loss {:.4f} of {} examples, norms\n{:>10} {:>6} {:>16} {:>12}\n", model.gradients.loss,
        model.gradients.examples, "", "layer", "queries, keys", "rest");
  for (std::size_t layer = 0; layer < model.gradients.rest.size(); ++layer) {
    print("{:>10} {:>6} {:>16.3e} {:>12.3e}\n", "", layer, model.gradients.query_key[layer],
          model.gradients.rest[layer]);
  }
}

std::vector<std::int64_t> layer_numbers(const std::vector<std::string>& words) {
  std::vector<std::int64_t> layers;
  for (const std::string& word : words) {
    std::int64_t layer = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), layer);
    if (error != std::errc() || end != word.data() + word.size() || layer < 0)
      fail_usage(kWhere, "--layers: expected numbers of layers, got {}", word);
    layers.push_back(layer);
  }
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

// Draws one example as a page.
void run_document(const AnalyzeOptions& options) {
  if (options.forecast || !options.memory_limit.empty()) {
    fail_usage(kWhere, "--memory-limit and --forecast are of analyses of many examples: --document is one");
  }
  if (!options.compare.empty()) fail_usage(kWhere, "--document shows one model: expected no --compare");
  CommandPaths paths(kWhere);
  if (options.data.empty() == options.input.empty()) {
    fail_usage(kWhere, "--document is one of prepared --data, or of raw records with --input: expected one of the two");
  }
  paths.reads("--data", options.data);
  paths.reads("--input", options.input);
  paths.reads("--vocab", options.vocab);
  paths.reads_model("--model", options.model);
  paths.writes("--output", options.output);
  paths.check();
  std::error_code none;
  if (fs::is_regular_file(options.output, none)) {
    if (!options.overwrite) fail_usage(kWhere, "--output {}: exists already (--overwrite replaces it)", options.output);
    if (!analyze::is_document_page(options.output)) {
      fail_usage(kWhere, "--output {}: --overwrite replaces an earlier page, and this file is none", options.output);
    }
  }
  const analyze::DocumentAttention document =
      analyze::attend_document(options.model, {options.data,
                                               options.input,
                                               options.document,
                                               options.part,
                                               options.vocab,
                                               {options.top, layer_numbers(options.layers)},
                                               options.request.allow_incomplete});
  const std::string page = analyze::document_page(document);
  write_file_atomically(options.output, page);
  std::set<std::int64_t> shown;
  for (const auto& layer : document.layers) shown.insert(layer.layer);
  const std::string layers = fmt::format("{}", fmt::join(shown, ", "));
  print_summary(
      {options.output},
      fmt::format("{} tokens, {} global tokens, {} keys of each query, layers {} of {}, {} bytes\noutput: {}\n",
                  document.long_tokens.size(), document.global_tokens.size(), document.top, layers,
                  document.layers_of_model, page.size(), options.output));
}

// The models, all checked before the first is analysed, with the memory that is expected when each one's turn comes.
struct Opened {
  std::vector<analyze::OpenedAnalysis> models;
  std::vector<std::int64_t> peaks;
};
Opened open_all(const std::vector<fs::path>& folders, const analyze::AnalysisRequest& request) {
  Opened opened;
  for (const fs::path& folder : folders) opened.models.push_back(analyze::open_analysis(folder, request));
  std::int64_t held = 0;  // results of earlier models
  for (analyze::OpenedAnalysis& model : opened.models) {
    const analyze::ExpectedMemory expected = analyze::fit_memory(model, held);
    opened.peaks.push_back(expected.peak);
    held += expected.results;
  }
  return opened;
}

// Tells the memory before the work starts.
void log_expected_memory(const Opened& opened) {
  const std::int64_t peak = *std::max_element(opened.peaks.begin(), opened.peaks.end());
  log::info("expected peak memory {}", byte_size_text(peak));
  const std::int64_t machine = memory_capacity(Device::cpu);
  if (machine <= 0 || peak <= machine) return;
  log::warn("this is more than the memory of {} (with --memory-limit fewer tokens are in memory at a time)",
            byte_size_text(machine));
}

// Options that have no effect in the chosen mode (page or numbers) are errors.
void refuse_others(const Command& command, bool page) {
  if (page) {
    return refuse_given(command, kWhere, "--document: a page shows one example",
                        {"--examples", "--seed", "--groups", "--base", "--reach", "--exact", "--all-heads",
                         "--jsd-distance", "--gradients"});
  }
  for (const std::string& name : command.given()) {
    if (name == "--input" || name == "--part")
      fail_usage(kWhere, "{} needs --document: the numbers are those of prepared --data", name);
    if (name == "--layers" || name == "--top" || name == "--vocab") fail_usage(kWhere, "{} needs --document", name);
  }
}

void run_analyze(const Command& command, AnalyzeOptions& options) {
  require_one_process(kWhere, "this command");
  if (options.threads > 0) set_thread_count(options.threads);
  open_device(kDefaultDevice);
  options.model = model_folder(options.model);
  for (std::string& more : options.compare) more = model_folder(more);
  if (options.output.empty() && !options.forecast) fail_usage(kWhere, "expected --output: a folder to write");
  refuse_others(command, options.document >= 0);
  if (options.input.empty() && is_given(command, "--part"))
    fail_usage(kWhere, "--part needs --input: an example has no parts");
  if (options.document >= 0) return run_document(options);
  if (options.data.empty()) fail_usage(kWhere, "expected --data: prepared examples");
  std::vector<fs::path> folders{options.model};
  for (const std::string& more : options.compare) folders.emplace_back(more);
  options.request.groups = analyze::chosen_groups(options.groups);
  options.request.data = options.data;
  if (folders.size() > 1) check_comparison(folders);
  options.request.memory_limit = take_memory_limit(options.memory_limit, Device::cpu);
  if (!options.forecast) {
    check_paths(options, folders);
    analyze::require_replaceable(options.output, options.overwrite);
  }
  Opened opened = open_all(folders, options.request);
  if (options.forecast) {
    for (std::size_t n = 0; n < folders.size(); ++n) {
      print("{}: expected peak memory {}\n", folders[n].string(), byte_size_text(opened.peaks[n]));
    }
    return;
  }
  log_expected_memory(opened);
  std::vector<analyze::ModelAnalysis> models;
  for (analyze::OpenedAnalysis& model : opened.models) models.push_back(analyze::analyse(std::move(model)));
  write_all(models, options);
  for (const analyze::ModelAnalysis& model : models) print_table(model);
  log_peak_memory(Device::cpu);
  print("output: {}\n", options.output);
}

// Options of the page of one document.
void add_document_options(const Command& command, AnalyzeOptions& options) {
  command
      .option("--document", options.document,
              "instead: a page (HTML) of this example of the data, whom each token attends to")
      .at_least(0);
  command.option("--input", options.input,
                 "for --document: a raw file of the model's task (of texts: plain text), whose record of that number "
                 "is prepared as the model's data were");
  command.option("--part", options.part, "for --document and --input: which example of a record that makes several")
      .at_least(0);
  command.option("--vocab", options.vocab, "for --document: the data's vocabulary, where the model keeps none");
  command.option("--top", options.top, "for --document: keys of each query at most, as far as they fit into 5 MB")
      .at_least(1)
      .show_default();
  command
      .option("--layers", options.layers,
              "for --document: those shown [all, or as many, evenly spread, as leave room for 4 keys of each query]")
      .comma_separated();
}

// Options of the numbers.
void add_number_options(const Command& command, AnalyzeOptions& options) {
  command.option("--examples", options.request.examples, "most examples, drawn by the seed").at_least(1).show_default();
  command.option("--seed", options.request.seed, "seed of the drawing").show_default();
  command
      .option("--groups", options.groups,
              "query groups: all, cls, question, candidate, sentence_globals, paragraph_globals [all of them]")
      .comma_separated();
  command.option("--base", options.base, "of the entropies in pictures, which colours follow")
      .one_of({"nats", "bits"})
      .show_default();
  command
      .option("--reach", options.request.reach, "distances that are counted separately [the window's radius, else 128]")
      .at_least(1);
  command.flag("--exact", options.request.exact, "quantiles from up to 100,000 kept values, not from 512 bins");
  command.flag("--all-heads", options.request.all_heads,
               "also each head's divergence from all heads of the previous layer (takes N times as long)");
  command.flag("--jsd-distance", options.request.jsd_distance,
               "also the square root of each divergence, a distance in the mathematical sense");
  command
      .option("--gradients", options.request.gradients,
              "also the norms of each layer's gradient: of the loss of so many of these examples, the first ones, as "
              "one batch")
      .at_least(1);
}

}  // namespace

void add_analyze_command(Program& program) {
  program.add(
      "analyze", "entropy, divergence and masses of a model's attention, with pictures", [](const Command& command) {
        auto options = std::make_shared<AnalyzeOptions>();
        command.option("--model", options->model, "model folder, or a run, whose best checkpoint is taken").required();
        command.option("--compare", options->compare, "more models, side by side with the first");
        command.option("--data", options->data, "prepared data, HDF5; several files are shards of one data set");
        command.option("--output", options->output, "folder to write; with --document a file");
        add_number_options(command, *options);
        add_memory_option(command, options->memory_limit,
                          "choose how many tokens are in memory at a time, with the same results");
        command.flag("--forecast", options->forecast, "only print the expected memory of the analysis");
        command.flag("--overwrite", options->overwrite, "replace an earlier analysis or page");
        add_document_options(command, *options);
        command.flag("--allow-incomplete", options->request.allow_incomplete, kAllowIncompleteHelp);
        add_threads_option(command, options->threads);
        command.footer(kExamples);
        command.action([options, command] { run_analyze(command, *options); });
      });
}

}  // namespace etc::cli
