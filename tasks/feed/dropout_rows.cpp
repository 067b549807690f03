#include "tasks/feed/dropout_rows.h"

#include <utility>

namespace etc::feed {

std::shared_ptr<const RaggedRows> dropout_rows(const EncoderInput& input, std::vector<std::int64_t> offsets) {
  auto rows = std::make_shared<RaggedRows>();
  rows->offsets = std::move(offsets);
  for (std::int64_t b = 0; b < input.batch(); ++b) {
    const bool given = !input.sample_ordinals.empty();
    rows->sample_ordinals.push_back(
        static_cast<std::uint64_t>(given ? input.sample_ordinals[static_cast<std::size_t>(b)] : b));
  }
  return rows;
}

}  // namespace etc::feed
