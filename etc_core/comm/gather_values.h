// Gathers the numbers of every process in every process.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "etc_core/comm/communicator.h"

namespace etc {

// The values of rank 0, then those of rank 1, …, unchanged bit by bit. Ranks may give different counts.
template <typename Value>
std::vector<Value> gather_values(Communicator& processes, std::span<const Value> own) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (processes.size() == 1) return {own.begin(), own.end()};
  std::vector<Value> all;
  for (const std::string& part : processes.gather({reinterpret_cast<const char*>(own.data()), own.size_bytes()})) {
    const std::size_t before = all.size();
    all.resize(before + part.size() / sizeof(Value));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

}  // namespace etc
