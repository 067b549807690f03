// Norms of the loss gradient in each layer: of the parameters that produce scores, and of the other parameters.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "tasks/train/model.h"

namespace etc::analyze {

struct GradientNorms {
  std::int64_t examples = 0;  // number of examples in the mean loss; 0: not requested
  double loss = 0;
  std::vector<double> query_key, rest;  // [layers]: L2 norms over the layer's parameters of that part
};

// Both parts with their names.
std::array<std::pair<std::string, std::vector<double>>, 2> parts_of(const GradientNorms& norms);

// The layer and part of a parameter, from its name: parameters that produce scores (queries, keys, relative tables and
// biases), or all others (values, outputs, feed-forward layers, norms). layer -1: not of a single layer (embeddings, heads,
// tables shared by all layers).
struct ParameterPlace {
  std::int64_t layer = -1;
  bool of_scores = false;
};
ParameterPlace place_of_parameter(const std::string& name);

// The denominators of the examples' losses. Throws Error when no example has a label to compute a loss with.
std::vector<double> loss_counts(const Task& task, const data::DatasetReader& reader,
                                std::span<const std::int64_t> examples, const std::string& where);

// d loss/d w of the examples as one batch, in fp32 and without dropout, one example in memory at a time:
//   query_key[l] = sqrt(sum of (d loss/d w)^2 over the w of layer l that produce its scores), rest[l] over its other w
// where: names the data in messages. The model's gradients are released afterwards. Throws Error like loss_counts,
// and when loss or gradients are not finite; Interrupted after a stop signal.
// Source: analysis 7.
GradientNorms gradient_norms_of(TaskModel& model, const data::DatasetReader& reader,
                                std::span<const std::int64_t> examples, const std::string& where);

// The pass of one example; adds to the model's gradients. counts: the denominators of its losses.
double add_gradient(TaskModel& model, Examples alone, std::span<const double> counts, const std::string& where);

}  // namespace etc::analyze
