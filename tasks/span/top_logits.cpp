#include "tasks/span/top_logits.h"

#include <algorithm>

#include "tasks/span/head.h"

namespace etc::span {

TopLogits::TopLogits(const Var& positions, const std::vector<std::int64_t>& offsets, std::int64_t count)
    : count_(count), columns_(static_cast<std::size_t>(positions.value().cols())), offsets_(offsets) {
  const std::int64_t windows = std::ssize(offsets) - 1, columns = positions.value().cols();
  top_.resize(static_cast<std::size_t>(windows * columns * count));
  const Tensor& z = positions.value();
  ops::top_k(z.device(), {windows, columns, count, offsets.data(), z.data(), top_.data()});
  Tape tape(Recording::off);
  first_ = first_rows(tape, positions, offsets).value().to(Device::cpu);
}

std::span<const ops::Ranked> TopLogits::largest(std::size_t b, std::size_t column) const {
  const auto length = static_cast<std::size_t>(std::min(count_, offsets_[b + 1] - offsets_[b]));
  return {top_.data() + (b * columns_ + column) * static_cast<std::size_t>(count_), length};
}

float TopLogits::first(std::size_t b, std::size_t column) const {
  return first_.data()[b * columns_ + column];
}

}  // namespace etc::span
