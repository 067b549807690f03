// What an exception says, as a message of this program (error.h).
#pragma once

#include <exception>
#include <string>

namespace etc {

// error.what(); of what std::filesystem throws "PATH: cannot look up: Permission denied", not the library's words.
std::string error_text(const std::exception& error);

}  // namespace etc
