#include "etc_core/nn/random_input.h"

#include <vector>

#include "etc_core/base/random.h"
#include "sparse/labels/builders.h"

namespace etc {

EtcInput random_input(const EtcConfig& model, std::int64_t length, std::int64_t tokens_per_global) {
  const std::vector<std::int32_t> mask(static_cast<std::size_t>(length), 1);
  const sparse::FixedBlocks blocks = sparse::fixed_block_structure(mask, tokens_per_global);
  EtcInput input;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto bits = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, 1)[0];
    input.token_ids.push_back(static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(model.vocab_size)));
  }
  input.global_token_ids = blocks.global_token_ids;
  input.long_offsets.push_back(length);
  input.global_offsets.push_back(static_cast<std::int64_t>(input.global_token_ids.size()));
  input.labels = sparse::build_labels({&blocks.structure, 1}, {model.local_radius, model.relative_pos_max_distance,
                                                               model.use_hard_g2l_mask, model.use_hard_l2g_mask});
  return input;
}

}  // namespace etc
