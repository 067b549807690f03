// Names of BERT's variables: TensorFlow's names are used internally (etc-core 12.3), PyTorch's are translated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "etc_core/checkpoint/convert/tensor_source.h"

namespace etc::convert {

struct BertName {
  std::string name;         // "bert/encoder/layer_0/attention/self/query/kernel"; empty: no variable of BERT
  bool transposed = false;  // stored [out, in]: a dense kernel of PyTorch
};

// The TensorFlow name of a variable.
//   "bert.encoder.layer.0.output.dense.weight", "roberta.…", "electra.…", "encoder.layer.0.…" →
//   bert/encoder/layer_0/output/dense/kernel "….LayerNorm.weight" or ".gamma" → …/LayerNorm/gamma;  "lm_head.…" and
//   "cls.…" → cls/… names with slashes stay
BertName bert_name(std::string_view stored);

// The variables of a source by their TensorFlow names; tensors that are not BERT's are left out. Throws Error when two
// stored names mean the same variable.
struct BertVariable {
  std::string stored;
  bool transposed = false;
  std::vector<std::int64_t> shape;  // as in TensorFlow: [in, out]
};
using BertVariables = std::map<std::string, BertVariable, std::less<>>;
BertVariables bert_variables(const TensorSource& source);

// The reverse: PyTorch's name for a TensorFlow name, without the prefix "bert."; transposed: PyTorch stores it as
// [out, in]. Empty: no variable of BERT.
BertName hub_name(std::string_view name);

// Reads the numbers of a variable as [in, out]; `out` must have room for them.
void read_variable(const TensorSource& source, const BertVariable& variable, float* out);

// y [cols, rows] = xᵀ.   x [rows, cols]
void transpose(const float* x, std::int64_t rows, std::int64_t cols, float* y);

// The reason why a variable has no counterpart in ETC, for the report; kUnknownTensor: no reason is known.
std::string why_left_out(std::string_view stored, bool exact);

// Whether a variable, even an unknown one, belongs to the embeddings or layers by its name: "encoder.layer.0.….lora_A".
bool is_bert_encoder(std::string_view stored);

}  // namespace etc::convert
