#include "tests/support/simt/shadow.h"

namespace etc::simt {

void GlobalShadow::forget() {
  pages_.clear();
  remembered_.fill({});
}

GlobalShadow::Store& GlobalShadow::at(std::uintptr_t address) {
  if (Store* found = find(address)) return *found;
  const std::uintptr_t page = address / kPageBytes;
  Page& place = pages_[page];  // references to elements of an unordered_map stay valid when it grows
  remembered_[page % remembered_.size()] = {page, &place};
  return place.words[address % kPageBytes / 4];
}

}  // namespace etc::simt
