// Checks of options' words, with messages that say what is expected.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace etc::cli {

// "expected a whole number of at least 1, got 0"
CLI::Validator at_least(std::int64_t least);

// "expected run or strict, got strikt (did you mean strict?)"
CLI::Validator one_of(const std::vector<std::string>& words);

// What is wrong with the words of a command line, as the parser found it, in the same form: "etc train: --data: …".
std::string complaint(const CLI::App& program, const CLI::ParseError& error);

// The innermost command that was named, as in messages: "etc train", or "etc".
std::string command_text(const CLI::App& program);

}  // namespace etc::cli
