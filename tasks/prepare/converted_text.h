// Serialisation of a converted record, for exchange between processes of the same program.
#pragma once

#include <string>
#include <string_view>

#include "tasks/prepare/preparation.h"

namespace etc::prepare {

// Serialises everything: converted_of(text_of(x)) is x.
std::string text_of(const Converted& converted);
Converted converted_of(std::string_view text);  // throws Error on malformed bytes

}  // namespace etc::prepare
