// The last message of a run's log.
#pragma once

#include <string>

namespace etc::log {

// Writes what a command ends with to the file of log::also_to_file, if there is one, and not to stderr, where main prints
// it itself. fault: an error; else the run was told to stop.
void end_file(const std::string& message, bool fault);

}  // namespace etc::log
