#include "etc_core/base/buffer.h"

#include <cstdlib>

#include "etc_core/base/error.h"

namespace etc {

namespace {
constexpr std::int64_t kAlignment = 64;

std::int64_t rounded(std::int64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}
}  // namespace

Bytes::Bytes(std::int64_t size, Purpose purpose) : size_(size), purpose_(purpose) {
  if (size < 0) fail("buffer", "size must not be negative, got {}", size);
  if (size == 0) return;
  data_ = std::aligned_alloc(kAlignment, static_cast<std::size_t>(rounded(size)));
  if (data_ == nullptr) {
    size_ = 0;
    fail("memory", "{} bytes for {} are not to be had; in use:\n{}(shorter inputs or smaller batches need less)", size,
         purpose_name(purpose), memory_ledger::table());
  }
  memory_ledger::charge(purpose_, rounded(size_));
}

Bytes::~Bytes() {
  if (data_ == nullptr) return;
  std::free(data_);
  memory_ledger::charge(purpose_, -rounded(size_));
}

}  // namespace etc
