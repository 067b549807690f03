// Objects parsed by simdjson → columns: shared by read_flat_list (flat_list.h) and parse_record (json_record.h).
#pragma once

#include <simdjson.h>

#include <optional>
#include <string_view>
#include <vector>

#include "data/readers/flat_list.h"

namespace etc::data {

// nullopt unless every row is an object with exactly these members; `unread` members may occur any number of times and
// with any type.
std::optional<FlatList> flat_rows(simdjson::dom::array rows, const FlatMembers& members,
                                  const std::vector<std::string_view>& unread = {});

}  // namespace etc::data
