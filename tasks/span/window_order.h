// Documents longer than a window: their windows are consecutive examples, and decoded results are combined when the
// next document begins. So memory is that of one document, whatever the data set's size.
#pragma once

#include <set>
#include <string>

#include "etc_core/base/error.h"

namespace etc::span {

template <typename Id>
class WindowOrder {
 public:
  // Whether this window begins another document than the previous call's. Throws Error naming the example when its
  // document had already ended: its other windows would be lost.
  bool begins(const Id& document, const std::string& example) {
    if (!seen_.empty() && document == current_) return false;
    if (!seen_.insert(document).second) {
      fail("predict", "example {}: other documents stand between this document's windows (prepare the data again)",
           example);
    }
    current_ = document;
    return true;
  }

  bool contains(const Id& document) const { return seen_.contains(document); }

 private:
  std::set<Id> seen_;
  Id current_{};
};

}  // namespace etc::span
