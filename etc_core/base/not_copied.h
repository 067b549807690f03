// Base class that forbids copying and moving: for classes whose address is used elsewhere, or whose destructor undoes
// something.
//
//   class SignalsBlocked : NotCopied { … };
#pragma once

namespace etc {

class NotCopied {
 public:
  NotCopied(const NotCopied&) = delete;
  NotCopied& operator=(const NotCopied&) = delete;

 protected:
  NotCopied() = default;
  ~NotCopied() = default;
};

}  // namespace etc
