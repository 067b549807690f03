// Hidden states of plain texts: an encoder loaded once, and one text after the other in, with nothing prepared.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/sentence_splitter.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/tensor/tensor.h"
#include "tasks/document.h"
#include "tasks/train/inference_fit.h"

namespace etc {

struct TextEncoderOptions {
  std::filesystem::path model;  // folder with an encoder, with or without a head
  std::filesystem::path vocab;  // in the place of the vocabulary that the folder keeps; empty: that one
  Device device = Device::cpu;
  ComputeType compute = ComputeType::fp32;
  std::int64_t memory_limit = 0;  // bytes; 0: none
  std::int64_t max_long_tokens =
      0;  // most tokens of a text, special ones included; 0: 4096, or what the model has room for
};

// A text as the encoder reads it.
struct PreparedText {
  std::vector<std::int32_t> token_ids;     // [L]
  std::vector<std::int32_t> sentence_ids;  // [L], -1: of no sentence
  std::int64_t sentences = 0;              // G
  TokenCount tokens;
};

struct EncodedText {
  std::vector<std::int32_t> token_ids;  // [L]
  Tensor long_states;                   // [L, H], on the host
  Tensor global_states;                 // [G, H], one row a sentence; undefined: the encoder has no global tokens
  std::vector<float> mean;              // [H]: of the long states, special tokens aside
  TokenCount tokens;
};

// Rows of H numbers of what is wanted of a text: "mean" (one row), "long" or "global".
struct StateRows {
  const float* data = nullptr;
  std::int64_t rows = 0, columns = 0;
};
StateRows state_rows(const EncodedText& text, const std::string& states);

// {"id", "tokens": {"read", "cut"}, "states": a row of "mean", else a list of rows}
Json states_answer(const Json& id, const EncodedText& text, const std::string& states);

class TextEncoder : NotCopied {
 public:
  // where: what messages begin with, "etc encode". Throws UsageError where there is no vocabulary or the length has no
  // room for a word; Error on damaged files and another vocabulary than the model's.
  TextEncoder(std::string where, const TextEncoderOptions& options);

  // The same with the folder's encoder that is in memory already, its kernels released; it outlives this object.
  TextEncoder(std::string where, const TextEncoderOptions& options, Encoder& loaded);

  const EncoderConfig& model() const { return *config_; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  std::int64_t longest() const { return longest_; }  // tokens of a text, special ones included
  const std::string& vocab_sha256() const { return tokenizer_->vocab_sha256(); }

  // An encoder with global tokens reads CLS and the sentences, each with a global token, as in pre-training with hidden
  // sentences (pretraining 2.2); one without reads CLS, the text and SEP. What does not fit is cut behind the last token
  // that does. name: of the text in messages. Throws Error where the text is none (data::require_text) or has no token.
  EncodedText encode(std::string_view text, const std::string& name) const;

  // The two steps of it. Both may be called by several threads; the second with texts that are encoded together, each with
  // the bits that it has alone, once the encoder has computed.
  PreparedText prepare(std::string_view text, const std::string& name) const;
  std::vector<EncodedText> encode(std::span<const PreparedText> texts) const;

  // A pass over the texts that is counted (InferenceFit).
  CountedCall counted(std::span<const PreparedText> texts) const;

 private:
  TextEncoder(std::string where, const TextEncoderOptions& options, Encoder* loaded);

  EncoderInput input_of(std::span<const PreparedText> texts) const;

  std::string where_;
  ModelConfig config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  std::unique_ptr<data::SentenceSplitter> splitter_;
  std::int32_t cls_ = 0, sep_ = 0;
  std::int64_t longest_ = 0;
  ComputeType compute_;
  ParameterSet parameters_;
  std::unique_ptr<Encoder> own_;
  Encoder* encoder_ = nullptr;
  mutable std::optional<InferenceFit> fit_;
};

}  // namespace etc
