// The names of JSON documents alone, for headers that only pass them on: json.h costs every file that includes it about
// a second.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace etc {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // members in the order they were added, for lines that people read

}  // namespace etc
