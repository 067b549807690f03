#include "tasks/cli/command_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace etc::cli {

namespace {

bool is_option(const OptionText& option) {
  return option.name.starts_with("--");
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

// The text in single quotes for any shell.
std::string in_quotes(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> names;
  for (const CommandText& command : commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) {
    if (is_option(option)) names.push_back(option.name);
  }
  return names;
}

// The allowed values of an option; empty: anything.
std::vector<std::string> words_of(const CommandText& command, const OptionText& option) {
  if (!option.words.empty()) return option.words;
  if (option.name == "--task") return command.tasks;
  if (option.type.find('|') == std::string::npos) return {};
  std::vector<std::string> words(1);
  for (const char c : option.type) {
    if (c == '|') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

// The first line of a help text, for a menu.
std::string brief(const std::string& help) {
  return help.substr(0, help.find('\n'));
}

// The text escaped for a bracketed part of zsh's _arguments.
std::string zsh_text(const std::string& text) {
  std::string safe = replaced(text, "\\", "\\\\");
  for (const char* special : {"[", "]", ":"}) safe = replaced(safe, special, std::string("\\") + special);
  return safe;
}

// The text escaped for groff: no line begins with a control character, hyphens are minus signs.
std::string man_text(const std::string& text) {
  std::string safe = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  safe = replaced(safe, "\n", "\n\\&");
  return "\\&" + safe;
}

void add_manual_option(std::string& page, const OptionText& option) {
  std::string value = option.type.empty() ? "" : " " + option.type + (option.several ? " \\&..." : "");
  page += fmt::format(".TP\n\\fB{}\\fR{}\n{}", replaced(option.name, "-", "\\-"), replaced(value, "-", "\\-"),
                      man_text(option.help));
  std::vector<std::string> more;
  if (!option.words.empty()) more.push_back(fmt::format("one of {}", fmt::join(option.words, ", ")));
  if (!option.preset.empty()) more.push_back("default: " + option.preset);
  if (option.required) more.push_back("required");
  page += more.empty() ? "\n" : man_text(fmt::format(" ({})", fmt::join(more, "; "))) + "\n";
}

void add_manual_command(std::string& page, const CommandText& command) {
  page += fmt::format(".SH \"{}\"\n{}.\n", replaced("ETC " + command.name, "-", "\\-"), man_text(command.description));
  if (!command.tasks.empty()) {
    page += fmt::format(".PP\n\\fBetc {} TASK \\-\\-help\\fR shows the options of one task alone: {}.\n", command.name,
                        man_text(fmt::format("{}", fmt::join(command.tasks, ", "))));
  }
  std::vector<std::string> groups;
  for (const OptionText& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    page += fmt::format(".SS \"{}\"\n", man_text(group));
    for (const OptionText& option : command.options) {
      if (option.group == group) add_manual_option(page, option);
    }
  }
  if (!command.footer.empty()) page += fmt::format(".PP\n.nf\n{}\n.fi\n", man_text(command.footer));
}

}  // namespace

std::string bash_completion(const std::vector<CommandText>& commands) {
  std::string options, first, values;
  for (const CommandText& command : commands) {
    options += fmt::format("    {}) options={} ;;\n", command.name, in_quotes(joined(option_names(command))));
    if (!command.tasks.empty())
      first += fmt::format("    {}) tasks={} ;;\n", command.name, in_quotes(joined(command.tasks)));
    for (const OptionText& option : command.options) {
      const auto words = words_of(command, option);
      if (is_option(option) && !words.empty())
        values += fmt::format("    {}{}) words={} ;;\n", command.name, option.name, in_quotes(joined(words)));
    }
  }
  return fmt::format(R"(# bash completion of etc: source <(etc completion bash)
_etc() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  local options='' tasks='' words=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {} -- "$current"))
    return
  fi
  case $command in
{}  esac
  case $command in
{}    *) ;;
  esac
  case $command$before in
{}    *) ;;
  esac
  if [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [ "$COMP_CWORD" -eq 2 ] && [ -n "$tasks" ]; then
    COMPREPLY=($(compgen -W "$tasks" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _etc etc
)",
                     in_quotes(joined(names_of(commands)) + " --help --version"), options, first, values);
}

std::string zsh_completion(const std::vector<CommandText>& commands) {
  std::string menu, cases;
  for (const CommandText& command : commands) {
    menu += fmt::format("    {}\n", in_quotes(replaced(command.name, ":", "\\:") + ":" + brief(command.description)));
    cases += fmt::format("    {})\n      _arguments \\\n", command.name);
    if (!command.tasks.empty()) {
      cases += fmt::format("        {} \\\n", in_quotes("2::task:(" + joined(command.tasks) + ")"));
    }
    for (const OptionText& option : command.options) {
      if (!is_option(option)) continue;
      std::string specification = (option.several ? "*" : "") + option.name + "[" + zsh_text(brief(option.help)) + "]";
      const auto words = words_of(command, option);
      if (!option.type.empty()) specification += words.empty() ? ":value:_files" : ":value:(" + joined(words) + ")";
      cases += fmt::format("        {} \\\n", in_quotes(specification));
    }
    cases += "        '*:file:_files' ;;\n";
  }
  return fmt::format(R"(#compdef etc
# zsh completion of etc: etc completion zsh > FOLDER/_etc, where FOLDER is one of $fpath
_etc() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case $words[2] in
{}  esac
}}
_etc "$@"
)",
                     menu, cases);
}

std::string fish_completion(const std::vector<CommandText>& commands) {
  std::string lines = "# fish completion of etc: etc completion fish | source\n";
  const std::string all = joined(names_of(commands));
  for (const CommandText& command : commands) {
    lines += fmt::format("complete -c etc -f -n {} -a {} -d {}\n", in_quotes("not __fish_seen_subcommand_from " + all),
                         command.name, in_quotes(brief(command.description)));
    const std::string when = in_quotes("__fish_seen_subcommand_from " + command.name);
    for (const std::string& task : command.tasks) lines += fmt::format("complete -c etc -n {} -a {}\n", when, task);
    for (const OptionText& option : command.options) {
      if (!is_option(option)) continue;
      const auto words = words_of(command, option);
      lines += fmt::format("complete -c etc -n {} -l {}{}{} -d {}\n", when, option.name.substr(2),
                           option.type.empty() ? "" : " -r", words.empty() ? "" : " -f -a " + in_quotes(joined(words)),
                           in_quotes(brief(option.help)));
    }
  }
  return lines;
}

std::string manual_page(const std::vector<CommandText>& commands, const std::string& description,
                        const std::string& version) {
  std::string page = fmt::format(".TH ETC 1 \"\" \"{}\" \"User Commands\"\n", version);
  page += ".SH NAME\netc \\- long documents with ETC encoders\n";
  page += ".SH SYNOPSIS\n\\fBetc\\fR \\fIcommand\\fR [\\fItask\\fR] [\\fIoptions\\fR]\n";
  page += ".SH DESCRIPTION\n" + man_text(description) +
          ".\nResults go to standard output, messages to standard error; exit codes are 0 for success, 1 for failure, "
          "2 for a command line that cannot be meant, or an input of prepare that stops in the middle.\n";
  for (const CommandText& command : commands) {
    page += fmt::format(".TP\n\\fB{}\\fR\n{}\n", replaced(command.name, "-", "\\-"), man_text(command.description));
  }
  for (const CommandText& command : commands) add_manual_command(page, command);
  return page;
}

}  // namespace etc::cli
