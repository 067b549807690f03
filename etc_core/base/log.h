// Messages to stderr: a wrapper of spdlog. Results go to stdout and never through here.
#pragma once

#include <fmt/format.h>

#include <filesystem>

namespace etc::log {

// Plain lines on stderr, no colour codes when stderr is not a terminal. Call once in main and in test runners.
void to_stderr();

// From now on every message also goes to this file (a run's log), instead of an earlier one. Throws Error when it
// cannot be opened.
void also_to_file(const std::filesystem::path& path);

void write_info(fmt::string_view format, fmt::format_args args);
void write_warning(fmt::string_view format, fmt::format_args args);

template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write_info(format, fmt::make_format_args(args...));
}

template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write_warning(format, fmt::make_format_args(args...));
}

}  // namespace etc::log
