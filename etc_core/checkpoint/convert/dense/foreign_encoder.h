// Encoders of other programs that a dense encoder computes alike: whose configuration, under which names, stored how.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/report.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/parameters.h"

namespace etc::convert {

// How the numbers of a parameter lie in the source. A: heads N times head size D.
enum class StoredForm {
  plain,       // as the parameter
  transposed,  // [out, in]
  heads,       // the last axis, A, as [N, D]
  by_heads,    // a kernel [A, out] as [out, N, D]
};

// The place of one stored tensor in a dense encoder.
struct StoredPlace {
  std::string parameter;  // empty: none
  StoredForm form = StoredForm::plain;
  std::int64_t first_row = 0;  // rows above it are left out
};

struct ForeignEncoder {
  std::string kind;  // for people: "T5"
  DenseConfig config;
  std::vector<std::string> notes;  // what a reader of the report should know
  std::function<StoredPlace(std::string_view stored)> place;
  std::function<bool(std::string_view parameter)> is_zero;           // parameters the source has not, which are 0 there
  std::function<std::string(std::string_view stored)> why_left_out;  // kUnknownTensor: no reason is known
  std::function<bool(std::string_view stored)> is_encoder;           // by its name; a head's or a stranger's is not
};

// Adds to the empty set the parameters of foreign.config's encoder, and those behind it that the source has places for: a
// pooler, and with keep_heads what begins with "cls/". Fills them.
// Rules: every parameter has its tensor with the shape it should have, or is zero there, or Error listing all that do
//   not, before numbers are read; so is a tensor of the encoder that no parameter takes and that there is no reason to
//   leave out; two tensors of one parameter are an Error; weights are finite. The report names every tensor of the
//   source.
ConversionReport read_foreign(const TensorSource& source, const ForeignEncoder& foreign, bool keep_heads,
                              ParameterSet& parameters);

// Of a configuration file, config.json of the library `transformers`; `source` decides between variants of the names.
// Throws UsageError naming the key where the model computes what no dense encoder does, or is of another family.
//   bert      BertModel, ElectraModel with embeddings of the hidden size, BigBirdModel where its attention is full
//   roberta   RobertaModel, XLMRobertaModel, CamembertModel: positions count from pad_token_id + 1
//   nezha     NezhaModel: no absolute positions, sinusoids of clipped distances on keys and values
//   xlnet     XLNetModel without memory and permutations: distances as in Transformer-XL
//   t5        T5EncoderModel or the encoder of T5Model: pre-norm by root mean squares, buckets of distances
ForeignEncoder foreign_encoder(const std::string& family, const Json& json, const std::string& where,
                               const TensorSource& source);
const std::vector<std::string>& foreign_families();

}  // namespace etc::convert
