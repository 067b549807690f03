// Hidden states of plain texts: an encoder loaded once encodes texts one after the other, without prepared data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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
#include "etc_core/tensor/tensor.h"
#include "tasks/document.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/model.h"

namespace etc {

struct TextEncoderOptions {
  std::filesystem::path model;  // folder with an encoder, with or without a head
  std::filesystem::path vocab;  // instead of the vocabulary kept in the folder; empty: that one
  std::string splitter;         // "punkt:DIR" instead of the tables kept there; empty: those, or ICU's rules
  Device device = Device::cpu;
  InferenceTypes types;
  std::int64_t memory_limit = 0;  // bytes; 0: none
  std::int64_t max_long_tokens =
      0;  // most tokens of a text, special ones included; 0: 4096, or what the model has room for
};

// The encoder, and how texts are converted to its input.
struct TextEncoderParts {
  std::shared_ptr<Encoder> encoder;
  ModelConfig config;
  std::function<void()> load = {};    // loads the weights after all other checks; null: already loaded
  DataIdentity data = {};             // of the training data
  std::filesystem::path vocab = {};   // empty: none, input is given as ids
  std::filesystem::path tables = {};  // folder whose Punkt tables, if any, split sentences; otherwise ICU's rules
};

// Ids as read by an encoder, including special tokens, and the sentence of each: 0, 1, …, or -1.
struct TextIds {
  std::span<const std::int32_t> ids, sentences;  // [L]
};

// A text as the encoder reads it.
struct PreparedText {
  std::vector<std::int32_t> token_ids;     // [L]
  std::vector<std::int32_t> sentence_ids;  // [L]; -1: special tokens
  std::int64_t sentences = 0;              // G, for encoders with global tokens
  TokenCount tokens;
};

struct EncodedText {
  std::vector<std::int32_t> token_ids;     // [L]
  std::vector<std::int32_t> sentence_ids;  // [L]; -1: special tokens
  Tensor long_states;                      // [L, H], on the host
  Tensor global_states;                    // [G, H], one row per sentence; undefined: no global tokens
  std::vector<float> mean;                 // [H]: of the long states of tokens that belong to a sentence
  TokenCount tokens;
};

// The requested states of a text, as rows of H numbers: "mean" (one row), "long" or "global".
struct StateRows {
  const float* data = nullptr;
  std::int64_t rows = 0, columns = 0;
};
StateRows state_rows(const EncodedText& text, const std::string& states);

// {"id", "tokens": {"read", "cut"}, "states": one row for "mean", else a list of rows}
Json states_answer(const Json& id, const EncodedText& text, const std::string& states);

class TextEncoder : NotCopied {
 public:
  // where: the beginning of messages, "etc encode". Throws UsageError for a model that does not read texts (an
  // encoder-decoder, a language model), if there is no vocabulary, or if the length has no room for a word; Error on
  // damaged files and on another vocabulary than the model's.
  TextEncoder(std::string where, const TextEncoderOptions& options);
  // For an encoder that is already in memory and released (Encoder::release_kernels); options.model and options.vocab
  // are ignored.
  TextEncoder(std::string where, TextEncoderParts parts, const TextEncoderOptions& options);
  // For the folder's encoder that is already in memory and released; it must outlive this object.
  TextEncoder(std::string where, const TextEncoderOptions& options, Encoder& loaded);

  const EncoderConfig& model() const { return *config_; }
  Encoder& encoder() const { return *encoder_; }
  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  std::int64_t longest() const { return longest_; }  // most tokens of a text, including special ones
  const std::string& vocab_sha256() const { return tokenizer_->vocab_sha256(); }

  // An encoder with global tokens reads CLS and the sentences, each with a global token, as in pre-training with hidden
  // sentences (pretraining 2.2); an encoder without them reads CLS, the text and SEP. A longer text is cut after the
  // last token that fits. name: of the text in messages. Throws Error if the text is not valid (data::require_text) or
  // has no token.
  EncodedText encode(std::string_view text, const std::string& name) const;
  // The same for ids; each sentence has a global token if the encoder has them. Throws Error if sentences are not
  // numbered in order, or there are more ids or sentences than fit; for invalid ids as the encoder does.
  EncodedText encode(const TextIds& text, const std::string& name) const;

  // The steps of encode(). All may be called by several threads; encode() of several texts computes them together, each
  // with the bits that it has alone, once the encoder has computed before.
  PreparedText prepare(std::string_view text, const std::string& name) const;
  PreparedText prepare(const TextIds& text, const std::string& name) const;
  EncoderInput input_of(std::span<const PreparedText> texts) const;
  std::vector<EncodedText> encode(std::span<const PreparedText> texts) const;

  // A pass over the texts for counting memory (InferenceFit).
  CountedCall counted(std::span<const PreparedText> texts) const;

 private:
  void take_vocabulary(const TextEncoderParts& parts, const std::string& splitter);
  EncodedText encode_alone(const PreparedText& text, const std::string& name) const;

  std::string where_;
  ModelConfig config_;
  std::unique_ptr<data::Tokenizer> tokenizer_;
  std::unique_ptr<data::SentenceSplitter> splitter_;
  std::int32_t cls_ = 0, sep_ = 0;
  std::int64_t longest_ = 0;
  InferenceTypes types_;
  std::shared_ptr<Encoder> encoder_;
  mutable std::optional<InferenceFit> fit_;
};

}  // namespace etc
