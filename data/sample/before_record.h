// Hook by which the caller can cancel the writing of a sample.
#pragma once

#include <functional>

namespace etc::data {

// Called before each record is generated. An exception from it ends the writing; files completed by then are kept.
using BeforeRecord = std::function<void()>;

inline void nothing_before() {}

}  // namespace etc::data
