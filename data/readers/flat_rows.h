// Objects that simdjson has parsed → columns: what flat_list.h's reader and the record's share.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string_view>
#include <vector>

#include "data/readers/flat_list.h"

namespace etc::data {

// Nothing unless every row is an object of these members and, any number of times and of any type, `unread` ones.
std::optional<FlatList> flat_rows(simdjson::dom::array rows, const FlatMembers& members,
                                  const std::vector<std::string_view>& unread = {});

}  // namespace etc::data
