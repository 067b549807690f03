// Encoders of other programs for which a dense encoder gives the same results: their configuration, names and layouts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/base/json_fwd.h"
#include "etc_core/checkpoint/convert/report.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/parameters.h"

namespace etc::convert {

// The layout of a parameter's numbers in the source. A: heads N times head size D.
enum class StoredForm {
  plain,       // like the parameter
  transposed,  // [out, in]
  heads,       // the last axis, A, as [N, D]
  by_heads,    // a kernel [A, out] as [out, N, D]
};

// The counterpart of one stored tensor in a dense encoder.
struct StoredPlace {
  std::string parameter;  // empty: none
  StoredForm form = StoredForm::plain;
  std::int64_t first_row = 0;  // rows above it are left out
};

struct ForeignEncoder {
  std::string kind;  // for messages: "T5"
  DenseConfig config;
  std::vector<std::string> notes;  // remarks for the report
  std::function<StoredPlace(std::string_view stored)> place;
  std::function<bool(std::string_view parameter)> is_zero;           // parameters that the source lacks and that are 0
  std::function<std::string(std::string_view stored)> why_left_out;  // kUnknownTensor: no reason is known
  std::function<bool(std::string_view stored)> is_encoder;           // by its name; false for heads and unknown names
};

// Adds to the empty set the parameters of foreign.config's encoder, and those behind it that the source has places for:
// a pooler, and with keep_heads what begins with "cls/". Fills them. Rules: every parameter must have a tensor of the
// expected shape or be zero in the source, and every encoder tensor must
//   have a parameter or a known reason to be left out; else Error listing all mismatches, before numbers are read. Two
//   tensors for one parameter are an Error; weights must be finite. The report names every tensor of the source.
ConversionReport read_foreign(const TensorSource& source, const ForeignEncoder& foreign, bool keep_heads,
                              ParameterSet& parameters);

// The foreign encoder for a config.json of the library `transformers`; `source` decides between variants of the names.
// Throws UsageError naming the key when a dense encoder cannot compute the model, or it belongs to another family.
//   bert      BertModel, ElectraModel with embeddings of the hidden size, BigBirdModel as far as its attention is full
//   roberta   RobertaModel, XLMRobertaModel, CamembertModel: positions count from pad_token_id + 1
//   nezha     NezhaModel: no absolute positions, sinusoids of clipped distances on keys and values
//   xlnet     XLNetModel without memory and permutations: distances as in Transformer-XL
//   t5        T5EncoderModel or the encoder of T5Model: pre-norm by root mean squares, buckets of distances
ForeignEncoder foreign_encoder(const std::string& family, const Json& json, const std::string& where,
                               const TensorSource& source);
const std::vector<std::string>& foreign_families();

}  // namespace etc::convert
