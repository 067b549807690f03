// The layers of an encoder one after the other, in checkpointed stretches where the tape records.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "etc_core/autograd/functions.h"

namespace etc {

// Hidden states between layers: one variable per kind of token.
using LayerStates = std::vector<Var>;

struct LayerStack {
  std::int64_t layers = 0;
  // Backward keeps the input of every period-th layer and computes the rest again (etc-core 7); 0: keeps everything.
  std::int64_t period = 0;
  // One layer. Takes its input over, so that in inference its memory is free as soon as the layer no longer needs it.
  // It is called again in backward: it owns what it refers to, or its referents outlive the walk.
  std::function<LayerStates(Tape& tape, std::int64_t layer, LayerStates x, Pass pass)> layer;
  // After each layer of the forward pass; not after the call, and not of a layer computed again. May be null.
  std::function<void(std::int64_t layer, const LayerStates& x)> after;
};

// x through all layers, each called once in forward; returns the last one's states.
LayerStates run_layers(Tape& tape, LayerStates x, const LayerStack& stack);

}  // namespace etc
