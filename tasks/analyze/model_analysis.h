// One model's attention over examples of a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "tasks/analyze/first_tokens.h"
#include "tasks/analyze/gradient_norms.h"
#include "tasks/analyze/query_groups.h"
#include "tasks/analyze/relative_tables.h"
#include "tasks/analyze/results.h"

namespace etc::analyze {

struct AnalysisRequest {
  std::vector<std::string> data;  // prepared files, shards of one data set
  std::int64_t examples = 8192;   // at most, drawn by the seed
  std::uint64_t seed = 1;
  std::vector<QueryGroup> groups;
  std::int64_t reach = 0;  // distances -reach … reach; 0: the window's radius, of full attention 128
  bool exact = false;      // quantiles of kept values, not of bins
  bool all_heads = false;  // each head is compared with all heads of the layer before
  bool allow_incomplete = false;
  std::int64_t gradients = 0;  // of the loss of so many of the examples, the first ones, the layers' gradient norms
  std::int64_t micro_batch_tokens = 16384;  // long and global tokens in memory at once, fewer where memory is limited
  std::int64_t memory_limit = 0;            // of the process, in bytes; 0: none
};

// The reach of an analysis whose longest example has so many long tokens: what was asked for as far as there are such
// distances; else the window's radius, of full attention 128.
std::int64_t reach_of(const EncoderConfig& model, const AnalysisRequest& request, std::int64_t longest);

// Rows of a table of relative positions: |rel| and rel_bias by label and head.
struct TableNorms {
  std::string name;  // of the parameter
  std::int64_t rows = 0, heads = 0;
  std::vector<double> values;  // [rows, heads]: L2 norm, or the bias in logit units (divided by sqrt(D))
};

struct ModelAnalysis {
  std::filesystem::path folder;
  std::string task, residual;  // "off", "running sum (…)", …
  std::string norm;            // "post-ln", …, as the configuration says it
  std::int64_t layers = 0, heads = 0, examples = 0, examples_asked = 0, tokens = 0;
  std::vector<std::string> groups;
  std::vector<OperatorResults> operators;
  std::vector<TableNorms> tables;
  std::vector<RelativeTableValues> first_layer;
  FirstTokens first_tokens;  // of the first of the chosen examples
  GradientNorms gradients;
};

// The indices of `count` of `size` examples, in ascending order; all when there are no more. Equal arguments give equal
// choices.
std::vector<std::int64_t> drawn_examples(std::int64_t size, std::int64_t count, std::uint64_t seed);

// Examples that are in memory together, in order: as many as have `limit` long and global tokens, or a single one.
// tokens: of every example of the data.
std::vector<std::vector<std::int64_t>> micro_batches_of(const std::vector<std::int64_t>& tokens,
                                                        const std::vector<std::int64_t>& chosen, std::int64_t limit);

// Runs the model on the examples, in inference mode and fp32. Throws Error as encoder, task and reader do; on a model
// whose attention has no pairs; on probabilities that are not numbers (naming layer, head and example). Interrupted after
// a stop signal.
ModelAnalysis analyse_model(const std::filesystem::path& folder, const AnalysisRequest& request);

}  // namespace etc::analyze
