// Options of a command that have no effect in some of its calls.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "etc_core/base/error.h"
#include "tasks/cli/command.h"

namespace etc::cli {

// Throws UsageError "<where>: <option> is no option of <kind>" if one of these options is given.
inline void refuse_given(const Command& command, const char* where, const std::string& kind,
                         const std::vector<std::string>& options) {
  for (const std::string& name : command.given()) {
    if (std::find(options.begin(), options.end(), name) != options.end())
      fail_usage(where, "{} is no option of {}", name, kind);
  }
}

}  // namespace etc::cli
