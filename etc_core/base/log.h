// Messages to stderr (spdlog behind one door). Results go to stdout and never through here.
#pragma once

#include <spdlog/spdlog.h>

#include <filesystem>

namespace etc::log {

using spdlog::info;
using spdlog::warn;

// Plain lines on stderr, no colour codes when stderr is not a terminal. Call once in main and in test runners.
void to_stderr();

// From now on every message also goes to this file (a run directory's log). Throws Error when it cannot be opened.
void also_to_file(const std::filesystem::path& path);

}  // namespace etc::log
