// How whoever has a sample written ends the writing before its end.
#pragma once

#include <functional>

namespace etc::data {

// Called before each record is generated; what it throws ends the writing. Files that are whole by then stay.
using BeforeRecord = std::function<void()>;

inline void nothing_before() {}

}  // namespace etc::data
