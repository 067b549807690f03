// --profile of the commands that compute.
#pragma once

#include <string>

#include "tasks/cli/command.h"

namespace etc::cli {

struct ProfileOption {
  bool table = false;
  std::string trace;  // file to write, or empty

  bool wanted() const { return table || !trace.empty(); }
};

void add_profile_option(const Command& command, ProfileOption& profile);

// Records from its construction, if asked for. finish() prints the table to standard error and writes the trace;
// without it (an exception) nothing is reported. Needs registered kernels when finishing.
class Profile {
 public:
  explicit Profile(const ProfileOption& option);
  void finish();

 private:
  ProfileOption option_;
};

// The table: per operator calls, time and its share, rate, and the rate's share of what the machine was measured to do.
std::string profile_table();

}  // namespace etc::cli
