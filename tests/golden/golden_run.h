// One run of the model on a golden case, all results kept, and the comparison of a run with the file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "etc_core/nn/etc_config.h"
#include "tests/golden/golden_case.h"

namespace etc::test {

// By layer, -1: embeddings; long, global.
using LayerStates = std::map<std::int64_t, std::pair<Tensor, Tensor>>;

// A forward and perhaps a backward pass with the file's loss; all tensors in the memory of the host.
struct GoldenRun {
  LayerStates states;
  std::map<std::int64_t, std::map<std::string, Tensor>> scores;
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

// Differences of GoldenRuns.
struct GoldenDifference : ModelDifference {
  void compare(const GoldenCase& golden, const GoldenRun& run);  // outputs and scores
  void compare_attention(const GoldenCase& golden,
                         const LayerStates& states);                      // states between the blocks, as outputs
  void compare_backward(const GoldenCase& golden, const GoldenRun& run);  // loss and gradients
  std::vector<std::optional<double>> figures(const GoldenCase& golden) const;
};

}  // namespace etc::test
