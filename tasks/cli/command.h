// Commands of a program and their options, an interface to CLI11, which only command.cpp includes.
//
//   program.add("sample", "generate records", [](const Command& command) {
//     auto options = std::make_shared<SampleOptions>();
//     command.option("--records", options->records, "so many").at_least(1).show_default();
//     command.action([options] { run(*options); });
//   });
#pragma once

#include <cstdint>
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

// The description of an option for one task, instead of the common one.
struct OptionOfTask {
  std::string task, help, type, preset;  // type: "INT"; preset: the default, "": none
};

// What a command stores about itself and its options in addition to CLI11.
struct CommandNotes;

// A declared option; its functions add further properties.
class Option {
 public:
  Option(CLI::Option* option, std::shared_ptr<CommandNotes> notes) : option_(option), notes_(std::move(notes)) {}

  Option required() const;
  // For an option of whole numbers: "expected a whole number of at least 1, got 0", "… from 1 to 65535, got 70000".
  Option at_least(std::int64_t least) const;
  Option at_most(std::int64_t most) const;
  // "expected run or strict, got strikt (did you mean strict?)"
  Option one_of(const std::vector<std::string>& words) const;
  // A list may also be given as one word with commas.
  Option comma_separated() const;
  // --help shows the value that the option's variable has now, or this text.
  Option show_default() const;
  Option show_default(const std::string& text) const;
  // The heading in --help under which the option is listed.
  Option group(const std::string& heading) const;
  // Only these tasks have the option: `etc <command> TASK --help` shows it only for them. Without a task it is shown as
  // declared.
  Option of_tasks(const std::vector<OptionOfTask>& tasks) const;

 private:
  CLI::Option* option_;
  std::shared_ptr<CommandNotes> notes_;
};

enum class WordCount { one, at_most_one, any };

// A sub-command; copies refer to the same one. Variables that options are read into must live until the program has
// run.
class Command {
 public:
  Command(CLI::App* app, std::shared_ptr<CommandNotes> notes) : app_(app), notes_(std::move(notes)) {}

  // The command's first word may be one of these tasks, as a short form of its option --task.
  void task_first(const std::vector<std::string>& tasks) const;

  // name: "--output", or without dashes ("path") for a positional argument. Value: std::string, std::filesystem::path,
  // int, std::int64_t, std::uint64_t, or a std::vector of strings, paths or std::int64_t, which takes several words.
  template <typename Value>
  Option option(const std::string& name, Value& value, const std::string& help) const;
  Option flag(const std::string& name, bool& value, const std::string& help) const;

  // Options whose values are passed to `take` while the command line is read; a UsageError thrown by `take` begins with
  // the option's name.
  Option take_text(const std::string& name, std::function<void(const std::string&)> take,
                   const std::string& help) const;
  Option take_integer(const std::string& name, std::function<void(std::int64_t)> take, const std::string& help) const;
  // type: as shown by --help, "TEXT".
  Option take_words(const std::string& name, WordCount count, const std::string& type,
                    std::function<void(const std::vector<std::string>&)> take, const std::string& help) const;

  // The end of the --help text: examples.
  void footer(const std::string& text) const;
  // The function that runs the command once its command line is read. Returning means exit code 0; it throws Error for
  // 1, UsageError for 2, and ExitCode if the result itself determines the code.
  void action(std::function<void()> run) const;

  // The options given on the command line, "--from"; positional ones are left out.
  std::vector<std::string> given() const;

 private:
  CLI::App* app_;
  std::shared_ptr<CommandNotes> notes_;
};

bool is_given(const Command& command, const std::string& option);

// A command and its options as declared, for generating completions and manual pages (command_text.h).
struct OptionText {
  std::string name;  // "--output", or without dashes the name of a positional argument
  std::string type;  // "INT"; empty: a flag
  std::string help, preset, group;
  std::vector<std::string> words;  // allowed values; empty: anything
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

  // declare: declares options and action. Called only if the command line names the command, or by commands(): there
  // are some 700 options, and most invocations need few of them.
  void add(const std::string& name, const std::string& description, std::function<void(const Command&)> declare);
  std::vector<CommandText> commands();  // all added commands, in order

  // Reads the command line, runs its command and returns the exit code. Command-line errors are printed on standard
  // error ("etc train: --data: expected …, got …", "unknown option --dta (did you mean --data?)"), with exit code 2.
  // Rethrows what the command throws, except ExitCode.
  int run(int argc, const char* const* argv);

 private:
  void declare(const std::string& name);
  std::vector<std::string> words_of(int argc, const char* const* argv);

  std::unique_ptr<CLI::App> app_;
  std::map<std::string, std::shared_ptr<CommandNotes>> notes_;               // by command
  std::map<std::string, std::function<void(const Command&)>> not_declared_;  // by command
};

}  // namespace etc::cli
