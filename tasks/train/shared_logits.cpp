#include "tasks/train/shared_logits.h"

#include <cstring>

#include "etc_core/base/error.h"

namespace etc {

namespace {

// Rank of an undefined variable.
constexpr std::int64_t kUndefined = -1;

void append_numbers(std::string& bytes, const void* numbers, std::size_t size) {
  if (size > 0) bytes.append(static_cast<const char*>(numbers), size);
}

void append_integer(std::string& bytes, std::int64_t value) {
  append_numbers(bytes, &value, sizeof value);
}

void take_numbers(const std::string& bytes, std::size_t& at, void* numbers, std::size_t size) {
  if (size > bytes.size() - at) fail("evaluate", "logits of another process: expected {} bytes more", size);
  if (size > 0) std::memcpy(numbers, bytes.data() + at, size);
  at += size;
}

std::int64_t take_integer(const std::string& bytes, std::size_t& at) {
  std::int64_t value = 0;
  take_numbers(bytes, at, &value, sizeof value);
  return value;
}

}  // namespace

void append_logits(std::string& bytes, const HeadOutput& logits) {
  append_integer(bytes, std::ssize(logits));
  for (const Var& each : logits) {
    append_integer(bytes, each.defined() ? each.value().rank() : kUndefined);
    if (!each.defined()) continue;
    for (const std::int64_t size : each.value().shape()) append_integer(bytes, size);
    append_numbers(bytes, each.value().data(), static_cast<std::size_t>(each.value().size()) * sizeof(float));
  }
}

HeadOutput take_logits(const std::string& bytes, std::size_t& at) {
  HeadOutput logits(static_cast<std::size_t>(take_integer(bytes, at)));
  for (Var& each : logits) {
    const std::int64_t rank = take_integer(bytes, at);
    if (rank == kUndefined) continue;
    std::vector<std::int64_t> shape;
    for (std::int64_t axis = 0; axis < rank; ++axis) shape.push_back(take_integer(bytes, at));
    const Tensor values = Tensor::empty(shape, Purpose::activations);
    take_numbers(bytes, at, values.data(), static_cast<std::size_t>(values.size()) * sizeof(float));
    each = Var(values);
  }
  return logits;
}

}  // namespace etc
