#include "tasks/nq/top_logits.h"

#include <algorithm>

#include "tasks/span/head.h"

namespace etc::nq {

TopLogits::TopLogits(const Var& positions, const std::vector<std::int64_t>& offsets) : offsets_(offsets) {
  constexpr auto kColumns = static_cast<std::int64_t>(kPositionColumns);
  const std::int64_t windows = std::ssize(offsets) - 1;
  top_.resize(static_cast<std::size_t>(windows * kColumns * kEntriesPerWindow));
  const Tensor& z = positions.value();
  ops::top_k(z.device(), {windows, kColumns, kEntriesPerWindow, offsets.data(), z.data(), top_.data()});
  Tape tape(Recording::off);
  first_ = span::first_rows(tape, positions, offsets).value().to(Device::cpu);
}

WindowLogits TopLogits::window(std::size_t b) const {
  WindowLogits window;
  const auto length = static_cast<std::size_t>(std::min(kEntriesPerWindow, offsets_[b + 1] - offsets_[b]));
  for (std::size_t c = 0; c < kPositionColumns; ++c) {
    const std::size_t list = b * kPositionColumns + c;
    window.largest[c] = {top_.data() + list * static_cast<std::size_t>(kEntriesPerWindow), length};
    window.first[c] = first_.data()[list];
  }
  return window;
}

}  // namespace etc::nq
