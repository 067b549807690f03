// The Natural Questions head: four positions and an answer type per window (task-nq 4).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/parameters.h"
#include "tasks/nq/decode.h"
#include "tasks/span/head.h"
#include "tasks/task.h"

namespace etc::nq {

// Positions of a HeadOutput.
enum Logit : std::size_t { kPositionLogits = 0, kTypeLogits = 1 };

// Added to the logits of positions that cannot be an answer, where the mask is on.
inline constexpr float kMaskedLogit = -1e9f;

struct PositionMask {
  std::int32_t cls_id = 101;
  std::int32_t sep_id = 102;
};

// The positions of one window that the mask allows: CLS, and those between the first and the second SEP.
//   token_ids [L] → [L] 0 or 1
std::vector<std::uint8_t> allowed_positions(std::span<const std::int32_t> token_ids, const PositionMask& mask);

// Logits of final long states.
//   z = h·W_longᵀ + b_long,   y = h_CLS·W_typeᵀ + b_type
//   h [T, H] → z [T, 4], y [B, 5]
// Parameters: cls/nq/long_output_weights [4, H], _bias [4]; answer_type_output_weights [5, H], _bias [5].
class Head {
 public:
  Head(const EncoderConfig& model, const std::optional<PositionMask>& mask, ParameterSet& parameters);

  // {z, y}. offsets [B+1], token_ids [T] of the long side.
  HeadOutput logits(Tape& tape, const Var& long_states, const std::vector<std::int64_t>& offsets,
                    std::span<const std::int32_t> token_ids) const;

 private:
  std::optional<PositionMask> mask_;
  span::OutputLayer positions_;
  span::OutputLayer types_;
};

// Targets of the loss.
struct Labels {
  std::vector<std::int64_t> positions;  // [B, 4] within the window; 0 (CLS): not in this window
  std::vector<std::int64_t> types;      // [B]; -1: none
};
Labels labels_of(Examples examples);

// The five cross-entropies of each window, added and divided by five.
//   loss_b = (CE_sa_start + CE_sa_end + CE_la_start + CE_la_end + CE_type) / 5
//   offsets [B+1]; positions, dpositions [T, 4]; types, dtypes [B, 5]
//   position_labels [B, 4] within the window; type_labels [B], -1: the fifth term is 0
//   dpositions, dtypes = the gradient of Σ losses/denominator; null: not computed
// Returns the B losses, not divided by the denominator. The softmaxes run over all given positions.
struct WindowLoss {
  std::span<const std::int64_t> offsets;
  const float* positions = nullptr;
  const float* types = nullptr;
  std::span<const std::int64_t> position_labels;
  std::span<const std::int64_t> type_labels;
  double denominator = 1;
  float* dpositions = nullptr;
  float* dtypes = nullptr;
};
std::vector<double> window_losses(const WindowLoss& args);

}  // namespace etc::nq
