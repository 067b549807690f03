// Owner of the running scores (RealFormer) of one encoder forward: holds C and dC, knows to which layer they belong and
// what the next operator call may do with them.
//
// Invariant: an operator's C always belongs to exactly one layer, recorded here. Every call names its layer and fails
// when C does not belong to the layer it needs. A second backward, a forward in between or a retained tape is therefore
// an error instead of wrong numbers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "etc_core/base/buffer.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "sparse/attention_types.h"
#include "sparse/scores.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

struct ScoreOptions {
  std::int64_t layers = 0;
  std::int64_t heads = 0;             // N
  std::vector<bool> types;            // which attention types carry scores, by index; false beyond the end
  bool running_mean = false;          // logits of carrying types are divided by layer+1; C never is
  bool training = false;              // a backward will follow: dC is allocated, the last layer writes C
  bool keep_last = false;             // without training: the last layer also writes C (to export it)
  Device device = Device::cpu;        // where C and dC are stored
  ScoreType type = ScoreType::int32;  // of C; fp16: inference on the CPU only
};

using ScoredOperators = std::vector<const AttentionTiles*>;
using LayerScores = std::array<TypeScores, kKeySets>;
using LayerScoreGradients = std::array<TypeScoreGradients, kKeySets>;

// One encoder forward's running scores for any number of operators. Order of calls per operator, for N layers:
//   forward(0), …, forward(N-1)                            inference ends here
//   [recompute(N-1)], backward(N-1), …, [recompute(0)], backward(0)
// After backward(0) the state is free for another forward of the same batch shape.
//   forward(l):   C = s, or C + s                          mode write | add | add_unkept in the operator's arguments
//   recompute(l): logits from C                            mode read: same out and lse as forward(l), bit by bit
//   backward(l):  dC = ds, or dC + ds; then C = C - s      mode first | inner; rewind unless l = 0
// Types that are switched off keep mode none: their scores are neither carried nor divided.
// Memory: C and, in training, dC of every carrying type, one buffer for all layers; charged to `scores`.
//
// What C holds after each call, for 3 layers with sum:
//   forward 0: s0   forward 1: s0+s1   forward 2: s0+s1+s2   backward 2: s0+s1   backward 1: s0   backward 0: s0 (free)
class ScoreState {
 public:
  // The tiles must outlive the state; each type may occur in one of them only.
  ScoreState(const ScoreOptions& options, const ScoredOperators& operators);

  // The scores for the operator's arguments in this layer; call right before the operator. Each throws Error when the
  // state does not hold what the call needs.
  LayerScores forward(std::int64_t layer, const AttentionOperator& op);
  LayerScores recompute(std::int64_t layer, const AttentionOperator& op);
  LayerScoreGradients backward(std::int64_t layer, const AttentionOperator& op);

  bool carries(AttentionType type) const;

  // C (dC) of a carrying type in the external form; after forward(layer) it is the sum over layers 0 … layer.
  void export_running(AttentionType type, float* external) const;
  void export_gradient(AttentionType type, float* external) const;

  std::int64_t bytes() const;

 private:
  // One type's storage.
  struct Carried {
    const TypeTiles* tiles = nullptr;
    bool carries = false;
    Buffer<ScoreElement> running;  // C  [N, columns, kGroup]
    Buffer<HalfScore> half;        // C of type fp16, and then `running` is empty
    Buffer<float> gradient;        // dC [N, columns, kGroup]; training only
  };
  // One operator's types, and the layer to which its C belongs.
  struct Held {
    const AttentionOperator* op = nullptr;
    Carried types[kKeySets];
    std::int64_t layer = -1;    // the last layer summed; -1: none, ready for forward(0)
    bool walking_back = false;  // backward has begun: only lower layers follow
    bool finished = false;      // inference's last layer has run: C holds the layer before it
  };

  Held& held(const AttentionOperator& op);
  const Carried* find(AttentionType type) const;
  const Carried& carried(AttentionType type) const;
  float logit_scale(std::int64_t layer) const;
  LayerScores scores_of(Held& held, std::int64_t layer, ScoreMode mode);
  void check_layer(const char* who, const char* what, std::int64_t layer) const;

  ScoreOptions options_;
  std::vector<Held> operators_;
};

}  // namespace etc::sparse
