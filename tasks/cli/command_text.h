// Shell completions and the manual page, generated from the declarations of the commands (command.h).
#pragma once

#include <string>
#include <vector>

#include "tasks/cli/command.h"

namespace etc::cli {

// Completion of the program `etc` in a shell: commands, tasks as a command's first word, options, their values, and
// file names if any value is allowed. Each is a script for the shell:
std::string bash_completion(const std::vector<CommandText>& commands);  // source <(etc completion bash)
std::string zsh_completion(const std::vector<CommandText>& commands);   // as _etc in a folder of $fpath
std::string fish_completion(const std::vector<CommandText>& commands);  // etc completion fish | source

// The manual page of section 1, in groff's man macros.
std::string manual_page(const std::vector<CommandText>& commands, const std::string& description,
                        const std::string& version);

}  // namespace etc::cli
