// One member of a record without the rest: whoever chooses among records need not build them all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/readers/record_slicer.h"

namespace etc::data {

// The text of the record's member `name`; of several the last one's, as parse_record takes it. Nothing where the record
// has no such member or its value is no string, and where the text is not JSON as far as it is looked at: the values of
// other members are stepped over unread. parse_record says what is wrong. Throws std::bad_alloc when memory
// does not suffice. Thread-safe.
// Cost: one pass over the text that marks its strings and brackets; nothing is built.
std::optional<std::string> member_text(RecordSlice& slice, std::string_view name);

}  // namespace etc::data
