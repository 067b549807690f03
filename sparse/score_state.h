// The running scores of one encoder forward (RealFormer): who holds C and dC, of which layer, and what the next
// operator call may do with them.
//
// The invariant: an operator's C always belongs to exactly one layer, known here; every call asks for its layer and
// fails when C is not there. So a second backward, a forward in between or a retained tape are errors, not wrong
// numbers.
#pragma once

#include <array>
#include <cstdint>

#include "etc_core/base/buffer.h"
#include "etc_core/base/device.h"
#include "sparse/attention_types.h"
#include "sparse/global_attention.h"
#include "sparse/long_attention.h"
#include "sparse/scores.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse {

struct ScoreOptions {
  std::int64_t layers = 0;
  std::int64_t heads = 0;                     // N
  std::array<bool, kAttentionTypes> types{};  // which types carry scores, indexed by AttentionType
  bool running_mean = false;                  // logits of carrying types are divided by layer+1; C never is
  bool training = false;                      // a backward will follow: dC is kept, the last layer writes C
  bool keep_last = false;                     // without training: the last layer writes C all the same (to export it)
  Device device = Device::cpu;                // where C and dC lie
};

// One encoder forward's running scores. A sequence of calls, per operator (long, global), for N layers:
//   forward(0), …, forward(N-1)                            inference ends here
//   [recompute(N-1)], backward(N-1), …, [recompute(0)], backward(0)
// After backward(0) the state is free for another forward of the same batch shape.
//   forward(l):   C = s, or C + s                          the operator's arguments get mode write | add | add_unkept
//   recompute(l): logits from C                            mode read: same out and lse as forward(l), bit by bit
//   backward(l):  dC = ds, or dC + ds; then C = C - s      mode first | inner; rewind unless l = 0
// Types that are switched off neither carry nor divide: their arguments keep mode none.
// Memory: C and, in training, dC of every carrying type, once for all layers; charged to `scores`.
class ScoreState {
 public:
  // The tiles must outlive the state.
  ScoreState(const ScoreOptions& options, const LongTiles& long_tiles, const GlobalTiles& global_tiles);

  // Fill in the scores of the operator's arguments (l2l, l2g or g2g, g2l) for this layer, call right before the
  // operator. Each throws Error when the state does not hold what the call needs.
  void forward(std::int64_t layer, LongAttentionForward& args) { forward(layer, kLong, args.l2l, args.l2g); }
  void forward(std::int64_t layer, GlobalAttentionForward& args) { forward(layer, kGlobal, args.g2g, args.g2l); }
  void recompute(std::int64_t layer, LongAttentionForward& args) { recompute(layer, kLong, args.l2l, args.l2g); }
  void recompute(std::int64_t layer, GlobalAttentionForward& args) { recompute(layer, kGlobal, args.g2g, args.g2l); }
  void backward(std::int64_t layer, LongAttentionBackward& args) { backward(layer, kLong, args.l2l, args.l2g); }
  void backward(std::int64_t layer, GlobalAttentionBackward& args) { backward(layer, kGlobal, args.g2g, args.g2l); }

  bool carries(AttentionType type) const { return options_.types[static_cast<std::size_t>(type)]; }

  // C (dC) of a carrying type in the external form; after forward(layer) it is the sum over layers 0 … layer.
  void export_running(AttentionType type, float* external) const;
  void export_gradient(AttentionType type, float* external) const;

  // Sets C of the carrying types from external forms as if layers 0 … layer had been summed; indexed by AttentionType,
  // entries of other types are not looked at.
  void import_running(std::int64_t layer, const std::array<const float*, kAttentionTypes>& external);

  std::int64_t bytes() const;

 private:
  // Per operator, what its C holds.
  struct Held {
    std::int64_t layer = -1;    // the last layer summed; -1: nothing, free for forward(0)
    bool walking_back = false;  // backward has begun: only lower layers follow
    bool finished = false;      // inference's last layer has run: C holds the layer before it
  };
  enum Operator : int { kLong, kGlobal };

  void forward(std::int64_t layer, Operator op, TypeScores& first, TypeScores& second);
  void recompute(std::int64_t layer, Operator op, TypeScores& first, TypeScores& second);
  void backward(std::int64_t layer, Operator op, TypeScoreGradients& first, TypeScoreGradients& second);
  const TypeTiles& tiles(AttentionType type) const;
  float logit_scale(std::int64_t layer) const;
  TypeScores scores_of(AttentionType type, std::int64_t layer, ScoreMode mode);
  void check_layer(Operator op, const char* what, std::int64_t layer) const;

  ScoreOptions options_;
  const LongTiles* long_tiles_;
  const GlobalTiles* global_tiles_;
  std::array<Buffer<ScoreElement>, kAttentionTypes> running_;  // C
  std::array<Buffer<float>, kAttentionTypes> gradient_;        // dC
  std::array<Held, 2> held_;
};

}  // namespace etc::sparse
