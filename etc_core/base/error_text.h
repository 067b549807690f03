// The text of an exception as a message in this program's form (error.h).
#pragma once

#include <exception>
#include <string>

namespace etc {

// error.what(); for errors of std::filesystem "PATH: cannot look up: Permission denied" instead of the library's text, and
// likewise for memory and threads that the system does not give.
std::string error_text(const std::exception& error);

}  // namespace etc
