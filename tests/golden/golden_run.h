// One run of the model on a golden case, all results kept, and the comparison of a run with the file.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "etc_core/nn/etc_config.h"
#include "sparse/attention.h"
#include "tests/golden/golden_case.h"

namespace etc::test {

// By layer, -1: embeddings; long, global.
using LayerStates = std::map<std::int64_t, std::pair<Tensor, Tensor>>;

// Scores of one type between the forms of the engine, [N, B·L, W] for l2l, and of the files, [B, N, queries, columns].
enum class ScoreForm { engine, file };
std::vector<float> scores_as(ScoreForm form, const std::vector<float>& from, const std::string& type,
                             std::int64_t batch, std::int64_t heads);

// `before` (empty: zeros) plus the scores of one key set for all pairs inside the sequence, masked ones included, computed
// in double from what attention reads, on the CPU; all in the file's form.
std::vector<float> running_scores(const GoldenMasks& masks, const sparse::AttentionInputs& read, int key_set,
                                  std::vector<float> before);

// Replaces the scores of visible pairs, in the file's form, by those that the engine carries.
void set_visible(const GoldenMasks& masks, std::int64_t heads, const std::string& type,
                 const std::vector<float>& carried, std::vector<float>& scores);

// Throws Error unless scores of a file are 0 where a column lies outside the sequence.
void require_zero_outside(const GoldenFile& file, const GoldenMasks& masks, const std::string& type,
                          const std::string& data_set);

// A forward and perhaps a backward pass with the file's loss; all tensors in the memory of the host.
struct GoldenRun {
  LayerStates states;
  // By layer and type, in the file's form. On the CPU they have all pairs: visible ones as the model carries them, masked
  // ones, which the kernels leave out, computed from the layers' queries and keys.
  std::map<std::int64_t, std::map<std::string, std::vector<float>>> scores;
  bool has_masked_scores = false;
  Tensor long_states, global_states;
  double loss = 0;
  std::map<std::string, Tensor> gradients;
};

// Runs all examples, or example `only`, on a device whose backend is registered.
GoldenRun golden_run(const GoldenCase& golden, const EtcConfig& config, bool gradients,
                     std::optional<std::int64_t> only = std::nullopt, Device device = Device::cpu);

// The states between the two blocks of every layer, after attention and its residual sum, of all examples on the CPU.
// They cannot be observed, so each layer's states are computed as the output of a model in which that layer's feed-forward
// block is the identity. Empty if the file has none of them.
LayerStates attention_states(const GoldenCase& golden);

// Which numbers of a layer's scores are compared: those between defined rows, masked pairs only if the run has them. The
// arguments must outlive the result.
std::function<bool(std::int64_t)> counted_scores(const GoldenCase& golden, std::int64_t layer, const std::string& type,
                                                 const GoldenRun& run);

// Differences of GoldenRuns.
struct GoldenDifference : ModelDifference {
  void compare(const GoldenCase& golden, const GoldenRun& run);  // outputs and scores
  void compare_attention(const GoldenCase& golden,
                         const LayerStates& states);                      // states between the blocks, as outputs
  void compare_backward(const GoldenCase& golden, const GoldenRun& run);  // loss and gradients
  std::vector<std::optional<double>> figures(const GoldenCase& golden) const;
};

}  // namespace etc::test
