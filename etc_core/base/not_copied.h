// What a class that owns something by its address, or undoes something in its destructor, says by deriving from it: it is
// neither copied nor moved.
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
