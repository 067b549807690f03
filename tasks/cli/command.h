// Commands of a program and their options. CLI11 is behind this door: command.cpp alone includes it.
//
//   program.add("sample", "generate records", [](const Command& command) {
//     auto options = std::make_shared<SampleOptions>();
//     command.option("--records", options->records, "so many").at_least(1).show_default();
//     command.action([options] { run(*options); });
//   });
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace etc::cli {

// Thrown by a command whose result decides the program's exit code.
struct ExitCode {
  int value = 0;
};

// What an option is for one task, in the place of what it is for all.
struct OptionOfTask {
  std::string task, help, type, preset;  // type: "INT"; preset: the value it has when it is not given, "": none
};

// What a command knows beside CLI11 of itself and its options.
struct CommandNotes;

// One declared option, and what else there is to say of it.
class Option {
 public:
  Option(CLI::Option* option, std::shared_ptr<CommandNotes> notes) : option_(option), notes_(std::move(notes)) {}

  Option required() const;
  // Of an option of whole numbers: "expected a whole number of at least 1, got 0", "… from 1 to 65535, got 70000".
  Option at_least(std::int64_t least) const;
  Option at_most(std::int64_t most) const;
  // "expected run or strict, got strikt (did you mean strict?)"
  Option one_of(const std::vector<std::string>& words) const;
  // A list may be one word with commas.
  Option comma_separated() const;
  // --help shows the value that the option's variable has now, or this text.
  Option show_default() const;
  Option show_default(const std::string& text) const;
  // The heading of --help that it stands under.
  Option group(const std::string& heading) const;
  // Only these tasks have it: `etc <command> TASK --help` shows it for them alone. Without a task it is as declared.
  Option of_tasks(const std::vector<OptionOfTask>& tasks) const;

 private:
  CLI::Option* option_;
  std::shared_ptr<CommandNotes> notes_;
};

enum class WordCount { one, at_most_one, any };

// A sub-command; copies are of the same one. What options are read into must live until the program has run.
class Command {
 public:
  Command(CLI::App* app, std::shared_ptr<CommandNotes> notes) : app_(app), notes_(std::move(notes)) {}

  // The command's first word may be one of these tasks, as short for its option --task.
  void task_first(const std::vector<std::string>& tasks) const;

  // name: "--output", or without dashes ("path") what is told by its place. Value: std::string, std::filesystem::path,
  // int, std::int64_t, std::uint64_t, or a std::vector of strings, paths or std::int64_t, which takes several words.
  template <typename Value>
  Option option(const std::string& name, Value& value, const std::string& help) const;
  Option flag(const std::string& name, bool& value, const std::string& help) const;

  // Options whose values `take` is called with, while the command line is read; what it throws as UsageError begins
  // with the option's name.
  Option take_text(const std::string& name, std::function<void(const std::string&)> take,
                   const std::string& help) const;
  Option take_integer(const std::string& name, std::function<void(std::int64_t)> take, const std::string& help) const;
  // type: as --help shows it, "TEXT".
  Option take_words(const std::string& name, WordCount count, const std::string& type,
                    std::function<void(const std::vector<std::string>&)> take, const std::string& help) const;

  // What --help ends with: examples.
  void footer(const std::string& text) const;
  // Runs the command once its words are read. A return is exit code 0; it throws Error for 1, UsageError for 2, and
  // ExitCode where the result itself decides.
  void action(std::function<void()> run) const;

  // The options that the command line gives, "--from"; those told by their place are left out.
  std::vector<std::string> given() const;

 private:
  CLI::App* app_;
  std::shared_ptr<CommandNotes> notes_;
};

bool is_given(const Command& command, const std::string& option);

// A command and its options as they were declared, for whoever writes about them (command_text.h).
struct OptionText {
  std::string name;  // "--output", or without dashes what is told by its place
  std::string type;  // "INT"; empty: a flag
  std::string help, preset, group;
  std::vector<std::string> words;  // what its value is one of; empty: anything
  bool required = false, several = false;
};
struct CommandText {
  std::string name, description, footer;
  std::vector<std::string> tasks;  // of task_first
  std::vector<OptionText> options;
};

class Program {
 public:
  // version: the answer to --version.
  Program(const std::string& name, const std::string& description, const std::string& version);
  ~Program();

  // declare: its options and its action. Called where the command line names the command, or for commands(): there are
  // some 700 options, and most starts need few of them.
  void add(const std::string& name, const std::string& description, std::function<void(const Command&)> declare);
  std::vector<CommandText> commands();  // all that were added, in that order

  // Reads the command line, runs its command and returns the exit code. What is wrong with the words goes to standard
  // error ("etc train: --data: expected …, got …", "unknown option --dta (did you mean --data?)"), with 2. Passes on
  // what the command throws, but for ExitCode.
  int run(int argc, const char* const* argv);

 private:
  void declare(const std::string& name);
  std::vector<std::string> words_of(int argc, const char* const* argv);

  std::unique_ptr<CLI::App> app_;
  std::map<std::string, std::shared_ptr<CommandNotes>> notes_;               // by command
  std::map<std::string, std::function<void(const Command&)>> not_declared_;  // by command
};

}  // namespace etc::cli
