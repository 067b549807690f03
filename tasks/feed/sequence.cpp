#include "tasks/feed/sequence.h"

#include <vector>

namespace etc::feed {

sparse::AttentionStructure add_sequence(EncoderInput& input, const Numbers& token_ids, const Numbers& segment_ids,
                                        const SequenceGlobals& globals) {
  append(input.token_ids, token_ids);
  append(input.segment_ids, segment_ids);
  const std::int64_t length = std::ssize(token_ids);
  std::vector<std::int32_t> groups;  // [L] the global token of each token
  std::int64_t count = 0;            // G
  for (std::int64_t i = 0; i < length; ++i) {
    const bool copied = i < globals.copied;
    const std::int64_t group = copied ? i : globals.copied + (i - globals.copied) / globals.tokens_per_block;
    groups.push_back(static_cast<std::int32_t>(group));
    if (group < count) continue;
    count = group + 1;
    const std::int64_t id = copied ? token_ids[static_cast<std::size_t>(i)] : globals.block_id;
    input.global_token_ids.push_back(static_cast<std::int32_t>(id));
  }
  return sparse::structure_from_example_ids(std::vector<std::int32_t>(token_ids.size(), 1),
                                            std::vector<std::int32_t>(static_cast<std::size_t>(count), 1), groups);
}

}  // namespace etc::feed
