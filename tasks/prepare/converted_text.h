// A converted record as bytes, for its way from one process to another of the same program.
#pragma once

#include <string>
#include <string_view>

#include "tasks/prepare/preparation.h"

namespace etc::prepare {

// All of it; converted_of(text_of(x)) is x.
std::string text_of(const Converted& converted);
Converted converted_of(std::string_view text);  // throws Error on bytes that are no such text

}  // namespace etc::prepare
