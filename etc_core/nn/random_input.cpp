#include "etc_core/nn/random_input.h"

#include <utility>
#include <vector>

#include "etc_core/base/random.h"
#include "sparse/labels/builders.h"

namespace etc {

EtcInput random_input(const EtcConfig& model, std::int64_t length, std::int64_t tokens_per_global) {
  return random_batch(model, {length}, tokens_per_global);
}

EtcInput random_batch(const EtcConfig& model, const std::vector<std::int64_t>& lengths,
                      std::int64_t tokens_per_global) {
  EtcInput input;
  std::vector<sparse::AttentionStructure> structures;
  for (const std::int64_t length : lengths) {
    const std::vector<std::int32_t> mask(static_cast<std::size_t>(length), 1);
    sparse::FixedBlocks blocks = sparse::fixed_block_structure(mask, tokens_per_global);
    for (std::int64_t i = 0; i < length; ++i) {
      const auto bits = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, 1)[0];
      input.token_ids.push_back(static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(model.vocab_size)));
    }
    const std::vector<std::int32_t>& globals = blocks.global_token_ids;
    input.global_token_ids.insert(input.global_token_ids.end(), globals.begin(), globals.end());
    input.long_offsets.push_back(static_cast<std::int64_t>(input.token_ids.size()));
    input.global_offsets.push_back(static_cast<std::int64_t>(input.global_token_ids.size()));
    structures.push_back(std::move(blocks.structure));
  }
  input.labels = sparse::build_labels(structures, {model.local_radius, model.relative_pos_max_distance,
                                                   model.use_hard_g2l_mask, model.use_hard_l2g_mask});
  return input;
}

}  // namespace etc
