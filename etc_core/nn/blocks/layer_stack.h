// Runs the layers of an encoder in order, in checkpointed ranges if the tape records.
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
  // The tape keeps the input of every period-th layer and backward recomputes the rest (etc-core 7); 0: keeps
  // everything.
  std::int64_t period = 0;
  // One layer. Takes ownership of its input, so that in inference the memory is freed as soon as the layer no longer
  // needs it. Called again in backward, so everything it refers to must be owned by it or outlive the backward pass.
  std::function<LayerStates(Tape& tape, std::int64_t layer, LayerStates x, Pass pass)> layer;
  // Called after each layer of the forward pass, but not for a recomputed layer, nor after run_layers() returns. May be
  // null.
  std::function<void(std::int64_t layer, const LayerStates& x)> after;
};

// x through all layers, each called once in forward; returns the last one's states.
LayerStates run_layers(Tape& tape, LayerStates x, const LayerStack& stack);

}  // namespace etc
