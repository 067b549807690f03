// Reads one member of a record without building the rest, for code that selects among records.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/readers/record_slicer.h"

namespace etc::data {

// The text of the record's member `name`; of several the last one's, like parse_record. nullopt if the record has no
// such member, if its value is not a string, or if a fault in the JSON is met. Values of other members are skipped
// unchecked; parse_record reports faults. Throws std::bad_alloc when memory does not suffice. Thread-safe.
// Cost: one pass over the text that marks its strings and brackets; nothing is built.
std::optional<std::string> member_text(RecordSlice& slice, std::string_view name);

}  // namespace etc::data
