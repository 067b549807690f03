// Forward declarations of JSON types for headers that only pass them on, because json.h adds about a second to the
// compile time of every file that includes it.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace etc {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // members in the order they were added, for lines that people read

}  // namespace etc
