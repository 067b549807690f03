// etc ask and etc keyphrases: a model's answers about a user's own documents, without preparation.
#include <memory>
#include <string>
#include <vector>

#include "data/readers/byte_stream.h"
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/nn/backends.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/compute_option.h"
#include "tasks/cli/config_options.h"
#include "tasks/cli/device_option.h"
#include "tasks/cli/memory_option.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/threads_option.h"
#include "tasks/inference/document_model.h"
#include "tasks/output.h"
#include "tasks/text/json_field.h"
#include "tasks/train/model_folder.h"

namespace etc::cli {

namespace {

constexpr std::size_t kLargestDocument = std::size_t{1} << 28;  // bytes

struct DocumentOptions {
  std::string model, vocab, form;
  std::vector<std::string> documents;
  std::string question;
  std::string device = kDefaultDevice, compute = kDefaultCompute, scores = kDefaultScores, memory_limit;
  int threads = 0;
  bool json = false;
  GivenOptions given;  // decoding keys of section task
};

// Reads a whole document, plain or gzip.
std::string read_document(const std::string& name) {
  data::ByteStream stream(name);
  std::string text, block(std::size_t{1} << 16, '\0');
  while (const std::size_t got = stream.read(block.data(), block.size())) {
    text.append(block, 0, got);
    if (text.size() > kLargestDocument)
      fail(data::raw_file_text(name), "expected a document of at most {} bytes, got more", kLargestDocument);
  }
  if (!stream.fault().empty()) fail(data::raw_file_text(name), "{}", stream.fault());
  return text;
}

data::DocumentForm form_of(const std::string& given, const std::string& name, std::string_view document) {
  if (given == "plain") return data::DocumentForm::plain;
  if (given == "markdown") return data::DocumentForm::markdown;
  if (given == "html") return data::DocumentForm::html;
  return data::form_of(name, document);
}

RecordModelOptions model_options(const DocumentOptions& options) {
  RecordModelOptions model;
  model.model = options.model;
  model.vocab = options.vocab;
  model.task = options.given->value("task", Json::object());
  model.device = options.device;
  model.compute = options.compute;
  model.scores = options.scores;
  model.memory_limit = take_memory_limit(options.memory_limit, open_device(options.device).device);
  return model;
}

std::string percent(const Json& share) {
  return fmt::format("{:.2f} %", 100 * share.get<double>());
}

std::string place_text(const Json& place) {
  return fmt::format("[{}, {})", place.at("start").get<std::int64_t>(), place.at("end").get<std::int64_t>());
}

std::string tokens_text(const Json& answer) {
  const Json& tokens = answer.at("tokens");
  const std::int64_t read = tokens.at("read"), cut = tokens.at("cut");
  return fmt::format("tokens read {}, cut {}{}\n", read, cut, cut > 0 ? ": the model did not see all of the text" : "");
}

// Scores of HotpotQA and SQuAD are probabilities, those of Natural Questions sums of logits.
std::string score_text(const Json& place, bool probabilities) {
  if (!place.contains("score")) return "";
  return probabilities ? percent(place.at("score")) + "  " : fmt::format("{:.3g}  ", place.at("score").get<double>());
}

std::string answer_text(const Json& answer) {
  const bool probabilities = answer.contains("answer_type_scores");
  const Json& text = answer.at("answer");
  std::string out = fmt::format("answer  {}\n", text.is_null() ? "(none)" : text.get<std::string>());
  for (const Json& place : answer.at("places")) {
    out += fmt::format("  {}{} {}\n", score_text(place, false), place_text(place), place.at("text").get<std::string>());
  }
  if (probabilities) {
    std::string types;
    for (const auto& [type, score] : answer.at("answer_type_scores").items())
      types += fmt::format("{}{} {}", types.empty() ? "" : ", ", type, percent(score));
    out += fmt::format("  type {}; score of the answer {}\n", types, percent(answer.at("score")));
  }
  if (!answer.at("evidence").empty()) out += "evidence\n";
  for (const Json& place : answer.at("evidence")) {
    out += fmt::format("  {}{} {}\n", score_text(place, probabilities), place_text(place),
                       place.at("text").get<std::string>());
  }
  return out + tokens_text(answer);
}

std::string phrases_text(const Json& answer) {
  std::string out = answer.at("document").get<std::string>() + "\n";
  for (const Json& phrase : answer.at("keyphrases")) {
    out +=
        fmt::format("  {}{} {}\n", score_text(phrase, true), place_text(phrase), phrase.at("text").get<std::string>());
  }
  return out + "  " + tokens_text(answer);
}

void check_paths(const char* where, const DocumentOptions& options) {
  CommandPaths paths(where);
  paths.reads_model("--model", options.model);
  paths.reads("--vocab", options.vocab);
  for (const std::string& document : options.documents) paths.reads_or_standard_input("the document", document);
  paths.check();
}

// One answer per document, each written before the next document is read.
void run_documents(const char* where, bool asks, const DocumentOptions& options) {
  check_paths(where, options);
  if (options.threads > 0) set_thread_count(options.threads);
  RecordModelOptions wanted = model_options(options);
  wanted.use = asks ? DocumentUse::ask : DocumentUse::keyphrases;
  RecordModel model(where, wanted);
  for (const std::string& name : options.documents) {
    const std::string document = read_document(name);
    const std::string said = data::raw_file_text(name);
    Json answer = answer_document(model, document, form_of(options.form, name, document), options.question, said);
    answer["document"] = said;
    print("{}", options.json ? text::one_line(answer) + "\n" : asks ? answer_text(answer) : phrases_text(answer));
    flush_standard_output();
  }
}

void add_common_options(const Command& command, DocumentOptions& options) {
  command.option("--form", options.form, "plain, markdown or html [by the file's name, or how it begins]")
      .one_of({"plain", "markdown", "html"});
  command.flag("--json", options.json, "write one JSON object a line (tasks/ANSWERS.md lists its members)");
  command.option("--vocab", options.vocab, "the vocabulary of the model's data, if its folder does not hold it");
  add_compute_option(command, options.compute);
  add_score_option(command, options.scores);
  add_device_option(command, options.device);
  add_memory_option(command, options.memory_limit, "how many tokens are in memory at a time, with the same results");
  add_threads_option(command, options.threads);
  options.given = add_config_options(command, [](const ConfigKey& key) { return key.decoding; });
}

constexpr const char* kModelHelp = "model folder, or a run, whose best checkpoint is taken";

}  // namespace

void add_ask_command(Program& program) {
  program.add("ask", "ask a question about your own document", [](const Command& command) {
    auto options = std::make_shared<DocumentOptions>();
    auto document = std::make_shared<std::string>();
    command.option("--model", options->model, std::string(kModelHelp) + "; of hotpotqa, nq or squad").required();
    command.option("--document", *document, "plain text, Markdown or HTML, UTF-8; -: standard input").required();
    command.option("--question", options->question, "the question").required();
    add_common_options(command, *options);
    command.footer(
        "Examples:\n"
        "  etc ask --model run --document report.md --question \"Who wrote the report?\"\n"
        "  curl -s https://example.org/page.html | etc ask --model run/best --document - --question \"…\" --json\n\n"
        "Places are characters of the document as it is, [first, behind the last). Tokens that are cut lie beyond the "
        "lengths\nthat the model's data were prepared with, or where its task does not look (nq: headings).");
    command.action([options, document] {
      require_one_process("etc ask", "it");
      options->model = model_folder(options->model);
      options->documents = {*document};
      run_documents("etc ask", true, *options);
    });
  });
}

void add_keyphrases_command(Program& program) {
  program.add("keyphrases", "find the key phrases of your own documents", [](const Command& command) {
    auto options = std::make_shared<DocumentOptions>();
    command.option("--model", options->model, std::string(kModelHelp) + "; of openkp").required();
    command.option("documents", options->documents, "plain text, Markdown or HTML, UTF-8; -: standard input")
        .required();
    add_common_options(command, *options);
    command.footer(
        "Examples:\n"
        "  etc keyphrases --model run notes.txt page.html\n"
        "  etc keyphrases --model run/best --json *.md");
    command.action([options] {
      require_one_process("etc keyphrases", "it");
      options->model = model_folder(options->model);
      run_documents("etc keyphrases", false, *options);
    });
  });
}

}  // namespace etc::cli
