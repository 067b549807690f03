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

// Records from its construction, if requested. finish() prints the table to standard error and writes the trace;
// without it (after an exception) nothing is reported. finish() needs registered kernels.
class Profile {
 public:
  explicit Profile(const ProfileOption& option);
  void finish();

 private:
  ProfileOption option_;
};

// The table: per operator calls, time and its share, rate, and the rate as a share of the peak measured on the machine.
std::string profile_table();

}  // namespace etc::cli
