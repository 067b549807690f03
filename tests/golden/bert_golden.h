// Golden files of kind `bert`: their input and weights, what a model makes of them, and its comparison with the file.
// The models are those of the tests; what BERT has and they have not, the pooler, is computed here.
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

// B sequences of the same length, as BERT takes them.
struct BertInput {
  std::int64_t batch = 0, length = 0;
  std::vector<std::int32_t> ids, types;  // [B, length]
  std::vector<std::int32_t> mask;        // [B, length]; keys where it is 0 are seen by no query
};

// The same as a batch of long tokens with labels up to `radius` tokens apart: 0 where BERT's key-side mask lets a pair
// be seen (padding queries see the valid keys). Token types become segment ids.
EncoderInput encoder_input(const BertInput& input, std::int64_t radius);

struct BertGolden {
  explicit BertGolden(const std::filesystem::path& path);
  // Its weights as a TensorFlow checkpoint, which is written into the folder.
  std::unique_ptr<convert::TensorSource> checkpoint(const TemporaryFolder& folder) const;

  GoldenFile file;
  convert::BertConfig config;
  BertInput input;
};

// What a model makes of the file's input, under the file's names.
struct BertRun {
  NamedNumbers outputs;  // "layer_0/output", …
  double loss = 0;
  NamedNumbers gradients;  // "bert/embeddings/word_embeddings", …
};

// Options with which a forward pass adds the embeddings and every layer's states and scores, [B, N, L, L], to `run`;
// both must live until then. Scores of visible pairs are those that the model carries; those of masked pairs, and all
// of a model that carries none, follow from the queries and keys its attention read, in double.
ForwardOptions watched(const BertGolden& golden, BertRun& run);

// Adds what is behind the last states [B·L, H], in double: the pooler, tanh(x·kernel + bias) of each sequence's first
// state, and where the file has gradients the loss, sum(sequence∘W_sequence) + sum(pooled∘W_pooled). Then states.grad()
// has the loss's gradient and `run` those of the pooler.
void add_loss(const BertGolden& golden, Var& states, BertRun& run);

struct BertDifference : ModelDifference {
  // Everything that the run has.
  void compare(const BertGolden& golden, const BertRun& run);
  std::vector<std::optional<double>> figures(const BertGolden& golden) const;
};

}  // namespace etc::test
