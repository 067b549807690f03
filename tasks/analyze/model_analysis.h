// Analysis of one model's attention over examples of a data set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tasks/analyze/first_tokens.h"
#include "tasks/analyze/gradient_norms.h"
#include "tasks/analyze/query_groups.h"
#include "tasks/analyze/relative_tables.h"
#include "tasks/analyze/results.h"
#include "tasks/train/fed_encoder.h"

namespace etc::analyze {

struct AnalysisRequest {
  std::vector<std::string> data;  // prepared files, shards of one data set
  std::int64_t examples = 8192;   // maximum number, drawn by the seed
  std::uint64_t seed = 1;
  std::vector<QueryGroup> groups;
  std::int64_t reach = 0;     // distances -reach … reach; 0: the window's radius, or 128 for full attention
  bool exact = false;         // quantiles from kept values instead of bins
  bool all_heads = false;     // each head is compared with all heads of the layer before
  bool jsd_distance = false;  // also the square root of the divergence
  bool allow_incomplete = false;
  std::int64_t gradients = 0;               // gradient norms of the loss of this many first examples; 0: none
  std::int64_t micro_batch_tokens = 16384;  // long and global tokens in memory at once, fewer if memory is limited
  std::int64_t memory_limit = 0;            // of the process, in bytes; 0: none (memory.h keeps to it)
};

// The reach of an analysis whose longest example has `longest` long tokens: the requested one, limited to the distances that
// exist; if none was requested, the window's radius, or 128 for full attention.
std::int64_t reach_of(const EncoderConfig& model, const AnalysisRequest& request, std::int64_t longest);

struct ModelAnalysis {
  std::filesystem::path folder;
  std::string task, residual;  // "off", "running sum (…)", …
  std::string norm;            // "post-ln", …, as in the configuration
  std::vector<std::string> data;
  std::int64_t layers = 0, heads = 0, examples = 0, examples_asked = 0, tokens = 0;
  std::vector<std::string> groups;
  std::vector<OperatorResults> operators;
  std::vector<TableNorms> tables;
  std::vector<RelativeTableValues> first_layer;
  FirstTokens first_tokens;  // of the first chosen example
  GradientNorms gradients;
};

// The indices of `count` of `size` examples, ascending; all of them if count >= size. A pure function of its arguments.
std::vector<std::int64_t> drawn_examples(std::int64_t size, std::int64_t count, std::uint64_t seed);

// Groups the examples into micro-batches, in order: each has at most `limit` long and global tokens, or a single example.
// tokens: token count of every example of the data.
std::vector<std::vector<std::int64_t>> micro_batches_of(const std::vector<std::int64_t>& tokens,
                                                        const std::vector<std::int64_t>& chosen, std::int64_t limit);

// A model and its data, before the weights are read.
struct OpenedAnalysis {
  std::filesystem::path folder;
  AnalysisRequest request;
  std::unique_ptr<FedEncoder> fed;
};

// Opens model and data and checks what does not need weights, so that nothing of it is noticed after hours. Throws Error like
// encoder, task and reader, for a model with linear attention, and with request.gradients where no loss can be computed.
OpenedAnalysis open_analysis(const std::filesystem::path& folder, const AnalysisRequest& request);

// Runs the model on the examples, in inference mode and fp32, request.micro_batch_tokens at a time. Throws Error for weights
// that cannot be read and on nan probabilities (naming layer, head and example). Interrupted after a stop signal.
ModelAnalysis analyse(OpenedAnalysis opened);

}  // namespace etc::analyze
