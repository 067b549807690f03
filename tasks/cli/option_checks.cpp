#include "tasks/cli/option_checks.h"

#include <charconv>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::cli {

namespace {

// The sub-command being parsed when the command line went wrong, or the program itself.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* each : program.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

// The option that the parser's message is about; null: none.
const CLI::Option* option_of(const CLI::App& command, const std::string& message) {
  const CLI::Option* found = nullptr;
  for (const CLI::Option* option : command.get_options()) {
    const std::string& name = option->get_name();
    const bool longer = found == nullptr || name.size() > found->get_name().size();
    if (longer && message.find(name) != std::string::npos) found = option;
  }
  return found;
}

std::string kind_text(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.starts_with("INT") || type.starts_with("UINT")) return "a whole number";
  if (type.starts_with("FLOAT") || type.starts_with("NUMBER")) return "a number";
  return "a value";
}

// What is wrong with an option's words: their number, or what they spell.
std::string words_text(const CLI::Option& option) {
  const CLI::results_t& words = option.results();
  const auto most = static_cast<std::size_t>(option.get_items_expected_max());
  const std::string name = option.get_name(), got = words.empty() ? "none" : fmt::format("{}", fmt::join(words, " "));
  const bool flag = option.get_expected_min() == 0 && option.get_type_name().empty();
  if (flag) return fmt::format("{}: expected no value, got {}", name, got);
  if (words.size() <= most) return fmt::format("{}: expected {}, got {}", name, kind_text(option), got);
  return fmt::format("{}: expected {}, got {} (is it given twice?)", name,
                     most == 1 ? "one value" : fmt::format("at most {} values", most), got);
}

std::string what_is_wrong(const CLI::App& command, const CLI::ParseError& error) {
  const auto is = [&](const char* name) { return error.get_name() == name; };
  if (is("ConversionError") || is("ArgumentMismatch")) {
    if (const CLI::Option* option = option_of(command, error.what())) return words_text(*option);
  }
  return error.what();
}

}  // namespace

CLI::Validator at_least(std::int64_t least) {
  return {[least](std::string& word) {
            std::int64_t number = 0;
            const char* const end = word.data() + word.size();
            const auto [stop, error] = std::from_chars(word.data(), end, number);
            if (error == std::errc() && stop == end && number >= least) return std::string();
            return fmt::format("expected a whole number of at least {}, got {}", least, word);
          },
          ""};
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[words](std::string& word) {
            if (std::find(words.begin(), words.end(), word) != words.end()) return std::string();
            return fmt::format("expected {}, got {}{}", alternatives(words), word, suggestion(word, words));
          },
          ""};
}

std::string command_text(const CLI::App& program) {
  const CLI::App& command = innermost(program);
  return &command == &program ? "etc" : "etc " + command.get_name();
}

std::string complaint(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& command = innermost(program);
  const std::string where = command_text(program);
  // A mistyped name is the likely cause of whatever else is missing, so it goes first.
  const auto extras = command.remaining();
  if (extras.empty() && &command == &program && error.get_name() == "RequiredError") {
    return where + ": expected a command: " + alternatives(command_names(program));
  }
  if (extras.empty()) return where + ": " + what_is_wrong(command, error);
  if (extras.front().starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options()) names.push_back("--" + option->get_single_name());
    return where + ": unknown option " + extras.front() + suggestion(extras.front(), names);
  }
  if (&command != &program) return where + ": unexpected argument " + extras.front();
  return where + ": unknown command " + extras.front() + suggestion(extras.front(), command_names(program));
}

}  // namespace etc::cli
