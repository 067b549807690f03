// How large the gradient of the loss is in each layer: of what makes scores, and of the rest.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "tasks/train/model.h"

namespace etc::analyze {

struct GradientNorms {
  std::int64_t examples = 0;  // whose mean loss it is; 0: not asked for
  double loss = 0;
  std::vector<double> query_key, rest;  // [layers]: L2 norms over the layer's parameters of that part
};

// Both parts with their names.
std::array<std::pair<std::string, std::vector<double>>, 2> parts_of(const GradientNorms& norms);

// Whose parameters a layer's are, by name: what its scores are made of (queries, keys, relative tables and biases) or
// anything else (values, outputs, feed-forward layers, norms). layer -1: of no single layer (embeddings, heads, tables
// that all layers share).
struct ParameterPlace {
  std::int64_t layer = -1;
  bool of_scores = false;
};
ParameterPlace place_of_parameter(const std::string& name);

// d loss/d w of the examples as one batch, in fp32 and without dropout, one example in memory at a time:
//   query_key[l] = sqrt(sum over w of layer l that make its scores of (d loss/d w)^2), rest[l] likewise
// where: names the data in messages. Leaves the model's gradients dropped. Throws Error when no example says an answer to
// compute a loss with, and where loss or gradients are no numbers; Interrupted after a stop signal.
// Source: analysis 7.
GradientNorms gradient_norms_of(TaskModel& model, const data::DatasetReader& reader,
                                std::span<const std::int64_t> examples, const std::string& where);

// The pass of one example, adding to the model's gradients. counts: what its losses are divided by.
double add_gradient(TaskModel& model, Examples alone, std::span<const double> counts, const std::string& where);

}  // namespace etc::analyze
