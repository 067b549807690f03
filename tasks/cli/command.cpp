#include "tasks/cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/words.h"
#include "tasks/output.h"

namespace etc::cli {

// The range of an option's whole number.
struct WholeRange {
  std::int64_t type_least = 0;
  std::uint64_t type_most = 0;
  std::optional<std::int64_t> least, most;  // explicit bounds

  // all: also include the bounds of the type.
  std::string text(bool all) const {
    const std::string low = std::to_string(least.value_or(type_least));
    const std::string high = most ? std::to_string(*most) : std::to_string(type_most);
    if (all || (least && most)) return fmt::format("a whole number from {} to {}", low, high);
    if (least) return "a whole number of at least " + low;
    return most ? "a whole number of at most " + high : "a whole number";
  }
};

struct CommandNotes {
  std::vector<std::string> tasks;
  std::map<const CLI::Option*, WholeRange> ranges;
  std::map<const CLI::Option*, std::vector<OptionOfTask>> of_tasks;
  std::map<const CLI::Option*, std::vector<std::string>> words;
};

namespace {

// The type of an option's whole numbers; void if its values are not whole numbers.
template <typename Value>
struct WholeType {
  using type = std::conditional_t<std::is_integral_v<Value>, Value, void>;
};
template <typename Value>
struct WholeType<std::vector<Value>> : WholeType<Value> {};

// Numbers are always decimal (no octal or hexadecimal prefixes), and out-of-range numbers are not clamped. Leaves in
// `word` what CLI11 reads as the number; returns the error, "": none.
template <typename Integer>
std::string take_whole_number(const WholeRange& range, std::string& word) {
  Integer number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, number);
  const bool above = !range.least || std::cmp_greater_equal(number, *range.least);
  const bool below = !range.most || std::cmp_less_equal(number, *range.most);
  if (error == std::errc() && stop == end && above && below) {
    word = std::to_string(number);
    return "";
  }
  // For a number that does not fit into the variable the message gives all bounds.
  const std::size_t digits = word.starts_with('-') ? 1 : 0;
  const bool decimal = word.size() > digits && word.find_first_not_of("0123456789", digits) == std::string::npos;
  return fmt::format("expected {}, got {}", range.text(decimal && error != std::errc()), word.empty() ? "\"\"" : word);
}

// Adds the check to an option of whole numbers; does nothing for others.
template <typename Value>
void require_whole_numbers(CLI::Option* option, const std::shared_ptr<CommandNotes>& notes) {
  using Integer = typename WholeType<Value>::type;
  if constexpr (!std::is_void_v<Integer>) {
    using Limits = std::numeric_limits<Integer>;
    notes->ranges[option] = {Limits::min(), Limits::max(), {}, {}};
    const auto take = [notes, option](std::string& word) {
      return take_whole_number<Integer>(notes->ranges.at(option), word);
    };
    option->transform(CLI::Validator(take, ""));
  }
}

// An empty text is not a valid file name, and no other option accepts one. The parser takes the word after an option that
// needs a value even if it is the next option.
template <typename Value>
void refuse_wrong_words(CLI::Option* option, const CLI::App* command) {
  if constexpr (std::is_same_v<typename WholeType<Value>::type, void>) {
    const auto fault = [command](const std::string& word) -> std::string {
      if (word.empty()) return "expected a value, got an empty one";
      if (!word.starts_with("--")) return "";
      const CLI::Option* const other = command->get_option_no_throw(word);
      return other == nullptr ? "" : fmt::format("expected a value, got the option {}", word);
    };
    option->check(fault, "");
  }
}

// The sub-command that was being parsed when the error occurred, or the program itself.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

// The name as used in messages: "etc train", or "etc".
std::string command_text(const CLI::App& program) {
  const CLI::App& command = innermost(program);
  return &command == &program ? program.get_name() : program.get_name() + " " + command.get_name();
}

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* each : program.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

// "--name", also for options that help does not list.
std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
}

// The option that the parser's message refers to; null: none. The message has no name of an option that help does not
// list; it can only have too many values.
const CLI::Option* option_of(const CLI::App& command, const std::string& message) {
  const CLI::Option* found = nullptr;
  for (const CLI::Option* option : command.get_options()) {
    const std::string& name = option->get_name();
    const bool longer = found == nullptr || name.size() > found->get_name().size();
    const bool meant = name.empty() ? std::ssize(option->results()) > option->get_items_expected_max()
                                    : message.find(name) != std::string::npos;
    if (longer && meant) found = option;
  }
  return found;
}

std::string kind_text(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.starts_with("INT") || type.starts_with("UINT")) return "a whole number";
  if (type.starts_with("FLOAT") || type.starts_with("NUMBER")) return "a number";
  return "a value";
}

// Describes the error in an option's words: their number, or their values.
std::string words_text(const CLI::Option& option) {
  const CLI::results_t& words = option.results();
  const auto most = static_cast<std::size_t>(option.get_items_expected_max());
  const std::string name = name_of(option), got = words.empty() ? "none" : fmt::format("{}", fmt::join(words, " "));
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

// The message for a command-line error: "etc train: --data: …". tasks: the tasks that could be the command's first
// word.
std::string complaint(const CLI::App& program, const std::vector<std::string>& tasks, const CLI::ParseError& error) {
  const CLI::App& command = innermost(program);
  const std::string where = command_text(program);
  const auto before = program.remaining();  // words before the command, in an unspecified order
  const auto early = std::find_if(before.begin(), before.end(), [](const auto& word) { return word.starts_with("-"); });
  if (&command != &program && early != before.end()) {
    return fmt::format("{}: unknown option {}: options follow the command ({} …)", program.get_name(), *early, where);
  }
  // A mistyped name is the likely cause of anything else that is missing, so it is reported first.
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
  if (&command != &program) {
    if (std::find(tasks.begin(), tasks.end(), extras.front()) != tasks.end()) {
      return where + ": unexpected argument " + extras.front() + ": a task comes first (" + where + " " +
             extras.front() + " …)";
    }
    return where + ": unexpected argument " + extras.front() + suggestion(extras.front(), tasks);
  }
  return where + ": unknown command " + extras.front() + suggestion(extras.front(), command_names(program));
}

// The examples of a help text without those of other tasks. An example begins with "  etc ", and its continuation lines
// are indented further.
std::string examples_of(const std::string& footer, const std::string& task, const std::vector<std::string>& tasks) {
  std::istringstream lines(footer);
  std::string kept;
  bool keep = true;
  for (std::string line; std::getline(lines, line);) {
    const bool goes_on = line.starts_with("   ");
    if (!goes_on) {
      keep = !line.starts_with("  ") || std::none_of(tasks.begin(), tasks.end(), [&](const std::string& other) {
        return other != task && line.find(other) != std::string::npos;
      });
    }
    if (keep) kept += line + "\n";
  }
  if (kept.ends_with('\n')) kept.pop_back();
  return kept;
}

// Keeps in --help only the options of one task.
void show_task(CLI::App& command, const CommandNotes& notes, const std::string& task) {
  for (const auto& [declared, tasks] : notes.of_tasks) {
    CLI::Option* option = command.get_option(declared->get_name());
    const auto own = std::find_if(tasks.begin(), tasks.end(), [&](const OptionOfTask& of) { return of.task == task; });
    if (own == tasks.end()) {
      option->group("");
      continue;
    }
    option->description(own->help)->type_name(own->type)->default_str(own->preset);
  }
  if (CLI::Option* option = command.get_option_no_throw("--task")) option->group("");
  command.footer(examples_of(command.get_footer(), task, notes.tasks));
  command.description(command.get_description() + " (task " + task + ")");
}

}  // namespace

Option Option::required() const {
  return Option(option_->required(), notes_);
}

Option Option::at_least(std::int64_t least) const {
  notes_->ranges.at(option_).least = least;
  return *this;
}

Option Option::at_most(std::int64_t most) const {
  notes_->ranges.at(option_).most = most;
  return *this;
}

Option Option::one_of(const std::vector<std::string>& words) const {
  notes_->words[option_] = words;
  return Option(option_->check(
                    [words](const std::string& word) {
                      if (std::find(words.begin(), words.end(), word) != words.end()) return std::string();
                      return fmt::format("expected {}, got {}{}", alternatives(words), word, suggestion(word, words));
                    },
                    ""),
                notes_);
}

Option Option::comma_separated() const {
  return Option(option_->delimiter(','), notes_);
}

Option Option::show_default() const {
  return Option(option_->capture_default_str(), notes_);
}

Option Option::show_default(const std::string& text) const {
  return Option(option_->default_str(text), notes_);
}

Option Option::group(const std::string& heading) const {
  return Option(option_->group(heading), notes_);
}

Option Option::of_tasks(const std::vector<OptionOfTask>& tasks) const {
  notes_->of_tasks[option_] = tasks;
  return *this;
}

void Command::task_first(const std::vector<std::string>& tasks) const {
  notes_->tasks = tasks;
  CLI::Option* const option = app_->get_option("--task");
  option->description(option->get_description() +
                      fmt::format("; etc {} TASK --help shows one of them", app_->get_name()));
}

template <typename Value>
Option Command::option(const std::string& name, Value& value, const std::string& help) const {
  CLI::Option* const option = app_->add_option(name, value, help);
  require_whole_numbers<Value>(option, notes_);
  refuse_wrong_words<Value>(option, app_);
  return Option(option, notes_);
}

#define ETC_OPTION_OF(...) template Option Command::option(const std::string&, __VA_ARGS__&, const std::string&) const;
ETC_OPTION_OF(std::string)
ETC_OPTION_OF(std::filesystem::path)
ETC_OPTION_OF(int)
ETC_OPTION_OF(std::int64_t)
ETC_OPTION_OF(std::uint64_t)
ETC_OPTION_OF(std::vector<std::string>)
ETC_OPTION_OF(std::vector<std::filesystem::path>)
ETC_OPTION_OF(std::vector<std::int64_t>)
#undef ETC_OPTION_OF

Option Command::flag(const std::string& name, bool& value, const std::string& help) const {
  return Option(app_->add_flag(name, value, help), notes_);
}

Option Command::take_text(const std::string& name, std::function<void(const std::string&)> take,
                          const std::string& help) const {
  return Option(app_->add_option_function<std::string>(name, std::move(take), help), notes_);
}

Option Command::take_integer(const std::string& name, std::function<void(std::int64_t)> take,
                             const std::string& help) const {
  CLI::Option* const option = app_->add_option_function<std::int64_t>(
      name, [take = std::move(take)](const std::int64_t& value) { take(value); }, help);
  require_whole_numbers<std::int64_t>(option, notes_);
  return Option(option, notes_);
}

Option Command::take_words(const std::string& name, WordCount count, const std::string& type,
                           std::function<void(const std::vector<std::string>&)> take, const std::string& help) const {
  const auto take_results = [take = std::move(take)](const CLI::results_t& results) {
    std::vector<std::string> words;
    for (const std::string& word : results) {
      if (!word.empty()) words.push_back(word);  // an option without a value has an empty one
    }
    take(words);
    return true;
  };
  CLI::Option* option = app_->add_option(name, take_results, help)->type_name(type);
  if (count == WordCount::any) {
    option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();  // --data a.h5 b.h5
  } else if (count == WordCount::at_most_one) {
    option->expected(0, 1);
  } else {
    option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  }
  return Option(option, notes_);
}

void Command::footer(const std::string& text) const {
  app_->footer(text);
}

void Command::action(std::function<void()> run) const {
  app_->callback(std::move(run));
}

std::vector<std::string> Command::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*app_).get_options()) {
    if (option->count() > 0 && !option->get_positional()) names.push_back("--" + option->get_single_name());
  }
  return names;
}

bool is_given(const Command& command, const std::string& option) {
  const std::vector<std::string> names = command.given();
  return std::find(names.begin(), names.end(), option) != names.end();
}

Program::Program(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->require_subcommand(1);
  app_->set_version_flag("--version", version);
}

Program::~Program() = default;

void Program::add(const std::string& name, const std::string& description,
                  std::function<void(const Command&)> declare) {
  app_->add_subcommand(name, description);
  notes_[name] = std::make_shared<CommandNotes>();
  not_declared_[name] = std::move(declare);
}

void Program::declare(const std::string& name) {
  const auto node = not_declared_.extract(name);
  if (!node.empty()) node.mapped()(Command(app_->get_subcommand(name), notes_.at(name)));
}

std::vector<CommandText> Program::commands() {
  for (const auto& [name, notes] : notes_) declare(name);
  std::vector<CommandText> commands;
  for (const CLI::App* app : std::as_const(*app_).get_subcommands([](const CLI::App*) { return true; })) {
    const CommandNotes& notes = *notes_.at(app->get_name());
    CommandText& command =
        commands.emplace_back(CommandText{app->get_name(), app->get_description(), app->get_footer(), notes.tasks, {}});
    for (const CLI::Option* option : app->get_options()) {
      const bool flag = option->get_expected_min() == 0 && option->get_expected_max() == 0;
      const auto words = notes.words.find(option);
      command.options.push_back({option->get_positional() ? option->get_name() : "--" + option->get_single_name(),
                                 flag ? "" : option->get_type_name(), option->get_description(),
                                 option->get_default_str(), option->get_group(),
                                 words == notes.words.end() ? std::vector<std::string>() : words->second,
                                 option->get_required(), option->get_expected_max() > 1});
    }
  }
  return commands;
}

// The command line in reverse order, as CLI11 expects it. A task as the command's first word becomes the option --task.
std::vector<std::string> Program::words_of(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  for (const std::string& word : words) declare(word);  // CLI11 decides which of them is the command
  const auto notes = words.size() < 2 ? notes_.end() : notes_.find(words[0]);
  if (notes != notes_.end()) {
    const std::vector<std::string>& tasks = notes->second->tasks;
    if (std::find(tasks.begin(), tasks.end(), words[1]) != tasks.end()) {
      show_task(*app_->get_subcommand(words[0]), *notes->second, words[1]);
      words.insert(words.begin() + 1, "--task");
    } else if (!tasks.empty() && !words[1].starts_with("-")) {
      // No help of an unknown task: the word is complained about instead.
      std::erase_if(words, [](const std::string& word) { return word == "--help" || word == "-h"; });
    }
  }
  std::reverse(words.begin(), words.end());
  return words;
}

int Program::run(int argc, const char* const* argv) {
  try {
    app_->parse(words_of(argc, argv));
  } catch (const CLI::Success& help_or_version) {
    std::ostringstream text;
    const int code = app_->exit(help_or_version, text, text);
    write_standard_output(text.str());
    return code;
  } catch (const ExitCode& code) {
    return code.value;
  } catch (const CLI::ParseError& error) {
    const auto notes = notes_.find(innermost(*app_).get_name());
    const std::vector<std::string> tasks = notes == notes_.end() ? std::vector<std::string>() : notes->second->tasks;
    std::fprintf(stderr, "%s\n", complaint(*app_, tasks, error).c_str());
    return 2;
  } catch (const UsageError& error) {
    // An error thrown while the command line was read names only the option.
    const std::string message = error.what();
    if (!message.starts_with("--")) throw;
    fail_usage(command_text(*app_), "{}", message);
  }
  return 0;
}

}  // namespace etc::cli
