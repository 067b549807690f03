// Errors at boundaries.
//
// Every message has the form `where: what is wrong: expected …, got … (what to do)`. Inside loops use assertions;
// exceptions are for what a caller or a user can act on. The program maps Error to exit code 1, UsageError to 2.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace etc {

// Something went wrong with data, files, numbers or the machine: exit code 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The command line or a configuration is not valid: exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// The run was asked to stop (SIGINT, SIGTERM) and has saved what it had; not a failure of the program.
class Interrupted : public Error {
 public:
  using Error::Error;
};

// Throws Error or UsageError("where: <formatted message>"). Compiled once (error.cpp), so that more than a thousand
// callers do not each contain the code for formatting and throwing.
[[noreturn]] void throw_error(const std::string& where, fmt::string_view format, fmt::format_args args);
[[noreturn]] void throw_usage_error(const std::string& where, fmt::string_view format, fmt::format_args args);

// Throws Error("where: <formatted message>").
template <typename... Args>
[[noreturn]] void fail(const std::string& where, fmt::format_string<Args...> format, Args&&... args) {
  throw_error(where, format, fmt::make_format_args(args...));
}

// Throws UsageError("where: <formatted message>").
template <typename... Args>
[[noreturn]] void fail_usage(const std::string& where, fmt::format_string<Args...> format, Args&&... args) {
  throw_usage_error(where, format, fmt::make_format_args(args...));
}

}  // namespace etc
