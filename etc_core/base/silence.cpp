#include "etc_core/base/silence.h"

#include <atomic>

namespace etc {

namespace {
std::atomic<bool> g_silent{false};
}

void be_silent() {
  g_silent = true;
}

bool is_silent() {
  return g_silent;
}

}  // namespace etc
