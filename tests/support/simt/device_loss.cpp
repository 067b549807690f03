#include "tests/support/simt/device_loss.h"

#include "etc_core/base/cuda/runtime.h"
#include "tests/support/simt/copy_queues.h"

namespace etc::simt {

namespace {
std::int64_t g_operations = 0, g_last = -1;  // g_last: operations that succeed; -1: all do
int g_status = 0, g_coming = 0;              // the device's present status, and its status after the failure
}  // namespace

std::int64_t device_operations() {
  return g_operations;
}

void lose_device_after(std::int64_t operations, int status) {
  g_last = g_operations + operations;
  g_coming = status;
}

void restore_device() {
  g_last = -1;
  g_status = 0;
}

bool begin_operation(const char* what) {
  check_device(what);
  if (g_operations++ != g_last) return true;
  g_status = g_coming;
  drop_queued_work();
  return false;
}

void check_device(const char* where) {
  check_cuda(where, g_status);
}

}  // namespace etc::simt
