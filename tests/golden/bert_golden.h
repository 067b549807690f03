// Golden files of kind `bert`: their input and weights, a model's results for them, and the comparison with the file.
// The tests provide the models; BERT's pooler, which these models lack, is computed here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "etc_core/checkpoint/convert/bert/bert_config.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/encoder.h"
#include "tests/golden/golden_case.h"
#include "tests/support/folders.h"

namespace etc::test {

// B sequences of the same length, in BERT's input format.
struct BertInput {
  std::int64_t batch = 0, length = 0;
  std::vector<std::int32_t> ids, types;  // [B, length]
  std::vector<std::int32_t> mask;        // [B, length]; keys with 0 are visible to no query
};

// The same as a batch of long tokens with labels up to distance `radius`: 0 for pairs that BERT's key-side mask makes
// visible (padding queries see the valid keys). Token types become segment ids.
EncoderInput encoder_input(const BertInput& input, std::int64_t radius);

struct BertGolden {
  explicit BertGolden(const std::filesystem::path& path);
  // Writes its weights as a TensorFlow checkpoint to the folder and opens it.
  std::unique_ptr<convert::TensorSource> checkpoint(const TemporaryFolder& folder) const;

  GoldenFile file;
  convert::BertConfig config;
  BertInput input;
};

// A model's results for the file's input, under the file's names.
struct BertRun {
  NamedNumbers outputs;  // "layer_0/output", …
  double loss = 0;
  NamedNumbers gradients;  // "bert/embeddings/word_embeddings", …
};

// Options with which a forward pass adds the embeddings and every layer's states and scores, [B, N, L, L], to `run`;
// golden and run must live until then. Scores of visible pairs are those that the model carries. Scores of masked pairs, and
// all scores of a model that carries none, are computed in double from the queries and keys of its attention.
ForwardOptions watched(const BertGolden& golden, BertRun& run);

// Adds the computation after the last states [B·L, H], in double: the pooler, tanh(x·kernel + bias) of each sequence's first
// state and, if the file has gradients, the loss sum(sequence∘W_sequence) + sum(pooled∘W_pooled). In that case states.grad()
// receives the gradient of the loss, and `run` the gradients of the pooler.
void add_loss(const BertGolden& golden, Var& states, BertRun& run);

struct BertDifference : ModelDifference {
  // Compares everything in the run.
  void compare(const BertGolden& golden, const BertRun& run);
  std::vector<std::optional<double>> figures(const BertGolden& golden) const;
};

}  // namespace etc::test
