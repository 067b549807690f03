#include "tasks/prepare/learn_splitter.h"

#include "data/text/punkt_trainer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/prepare/inputs.h"
#include "tasks/prepare/text_progress.h"

namespace etc::prepare {

void learn_splitter(const std::string& task, const PreparationKind& kind, const Json& settings,
                    const std::vector<std::filesystem::path>& inputs) {
  constexpr std::string_view kPrefix = "punkt:";
  if (kind.texts == nullptr) fail_usage("etc prepare", "--learn-splitter: task {} cuts no sentences", task);
  const std::string splitter = settings.at("splitter").is_string() ? settings["splitter"].get<std::string>() : "";
  if (!splitter.starts_with(kPrefix) || splitter.size() == kPrefix.size()) {
    fail_usage("etc prepare", "--learn-splitter: expected --splitter punkt:FOLDER, the folder to write to, got \"{}\"",
               splitter);
  }
  const std::filesystem::path folder = splitter.substr(kPrefix.size());
  if (std::filesystem::exists(folder)) {
    fail_usage(folder.string(), "exists already: leave --learn-splitter out to use its tables, or name another folder");
  }
  for (const auto& input : inputs) {
    check_input(input);
    if (!is_stream(input)) continue;
    fail_usage("etc prepare",
               "--learn-splitter: input {}: the input is read four times, first to learn from it: expected a file, got "
               "a stream (save it to a file first; .gz is read as it is)",
               input.string());
  }
  constexpr std::int64_t kPasses = 3;  // of the trainer
  TextProgress progress("learn splitter", inputs, kPasses);
  std::int64_t visits = 0;
  const data::PunktTables tables = data::learn_punkt([&](const auto& visit) {
    for (const auto& input : inputs) {
      kind.texts(input, settings, [&](std::string_view text) {
        visit(text);
        progress.add_text(text);
        ++visits;
      });
      progress.end_file();
    }
  });
  progress.finish();
  data::write_punkt_tables(tables, folder);
  log::info("{}: {} abbreviations, {} collocations, {} sentence starters learned from {} texts", folder.string(),
            tables.abbreviations.size(), tables.collocations.size(), tables.starters.size(), visits / kPasses);
}

}  // namespace etc::prepare
