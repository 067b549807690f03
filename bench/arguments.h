// The command lines of the measuring programs.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace etc::bench {

// An option and the variable that it sets. A bool is a flag, numbers are positive, and a list is one word with commas.
struct Argument {
  const char* name;  // "--threads"; without dashes: the next word that belongs to no option
  std::variant<bool*, int*, std::int64_t*, std::string*, std::vector<int>*, std::vector<std::int64_t>*,
               std::vector<std::string>*>
      value;
  bool required = false;
  std::vector<std::string> words = {};  // the allowed ones; none: any
};

// Reads the command line of `program`. Throws UsageError, which lists the arguments.
void read_arguments(const char* program, int argc, char** argv, const std::vector<Argument>& arguments);

}  // namespace etc::bench
