#include "tasks/inference/text_encoder.h"

#include <algorithm>

#include "data/text/document.h"
#include "etc_core/base/error.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/feed/batch.h"
#include "tasks/text/special_pieces.h"
#include "tasks/train/kept_files.h"
#include "tasks/train/model.h"

namespace etc {

namespace {

constexpr std::int64_t kUsualLength = 4096;
constexpr std::int32_t kSentenceId = 1;  // vocabulary id of a sentence's global token (pretraining 2.2)

std::filesystem::path vocabulary_of(const TextEncoderOptions& options, const DataIdentity& data,
                                    const std::string& where) {
  if (!options.vocab.empty()) return options.vocab;
  if (data.vocab_file.empty())
    fail_usage(where, "--text needs --vocab: the model's folder {} holds no vocabulary", options.model.string());
  return options.model / data.vocab_file;
}

std::vector<float> mean_of(const Tensor& states, std::int64_t first, std::int64_t end) {
  std::vector<double> sums(static_cast<std::size_t>(states.cols()), 0);
  for (std::int64_t row = first; row < end; ++row) {
    for (std::size_t h = 0; h < sums.size(); ++h)
      sums[h] += static_cast<double>(states.data()[row * states.cols() + static_cast<std::int64_t>(h)]);
  }
  std::vector<float> mean;
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / static_cast<double>(end - first)));
  return mean;
}

}  // namespace

TextEncoder::TextEncoder(std::string where, const TextEncoderOptions& options)
    : where_(std::move(where)), config_(read_encoder_config(options.model)), compute_(options.compute) {
  const DataIdentity data = DataIdentity::of(read_model_config(options.model));
  const std::filesystem::path vocab = vocabulary_of(options, data, where_);
  const Json& prepared = data.preprocess_config;
  const bool lower_case = !prepared.is_object() || prepared.value("do_lower_case", true);
  tokenizer_ = data::load_tokenizer(vocab, {.do_lower_case = lower_case});
  if (!data.vocab_sha256.empty() && tokenizer_->vocab_sha256() != data.vocab_sha256) {
    fail(vocab.string(), "another vocabulary than the model's: expected SHA-256 {}, got {}", data.vocab_sha256,
         tokenizer_->vocab_sha256());
  }
  if (tokenizer_->vocab_size() > config_->vocab_size) {
    fail(vocab.string(), "the vocabulary has {} pieces: expected at most the model's vocab_size {}",
         tokenizer_->vocab_size(), config_->vocab_size);
  }
  const std::string tables = splitter_in(options.model);
  splitter_ = data::load_splitter(tables.empty() ? "icu" : tables);
  cls_ = text::special_id(*tokenizer_, text::kClsPiece);
  sep_ = text::special_id(*tokenizer_, text::kSepPiece);
  const std::int64_t room = config_->max_absolute_position_embeddings;
  longest_ = options.max_long_tokens > 0 ? options.max_long_tokens
             : room > 0                  ? std::min(room, kUsualLength)
                                         : kUsualLength;
  if (room > 0 && longest_ > room)
    fail_usage(where_, "--max-long-tokens: expected at most {}, the model's positions, got {}", room, longest_);
  if (longest_ < 3) fail_usage(where_, "--max-long-tokens: expected at least 3, got {}", longest_);
  if (options.memory_limit > 0) fit_.emplace(where_, options.memory_limit, options.device, *config_, compute_);
  encoder_ = config_->make_encoder(parameters_);
  load_parameters(options.model / "model.safetensors", parameters_, Match::encoder);
  parameters_.to(options.device);
  encoder_->release_kernels(compute_);
}

EncoderInput TextEncoder::input_of(std::string_view text, const std::string& name, TokenCount& tokens) const {
  const bool sentences = config_->has_global_tokens();
  const std::int64_t most = longest_ - (sentences ? 1 : 2);  // beside CLS and SEP
  const std::int64_t most_sentences =
      config_->max_absolute_position_embeddings > 0 ? config_->max_absolute_position_embeddings : most;
  feed::BatchBuilder builder(*config_);
  EncoderInput& input = builder.input();
  std::vector<std::int32_t> sentence_ids = {-1};  // [L]
  input.token_ids.push_back(cls_);
  for (const data::ByteSpan& span : splitter_->split(text)) {
    const auto sentence =
        text.substr(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end - span.begin));
    std::vector<std::int32_t> ids;
    input.token_ids.size() == 1 ? tokenizer_->append_ids(sentence, ids) : tokenizer_->append_word_ids(sentence, ids);
    const auto number = static_cast<std::int32_t>(input.global_token_ids.size());
    const std::int64_t room = number < most_sentences ? most - tokens.read : 0;
    const std::int64_t kept = std::min(std::ssize(ids), tokens.cut > 0 ? 0 : room);
    input.token_ids.insert(input.token_ids.end(), ids.begin(), ids.begin() + kept);
    sentence_ids.insert(sentence_ids.end(), static_cast<std::size_t>(kept), number);
    if (kept > 0) input.global_token_ids.push_back(kSentenceId);
    tokens.read += kept;
    tokens.cut += std::ssize(ids) - kept;
  }
  if (tokens.read == 0) fail(name, "the text has no token in the model's vocabulary");
  if (!sentences) {
    input.token_ids.push_back(sep_);
    sentence_ids.push_back(-1);
    input.segment_ids.resize(input.token_ids.size(), 0);
  }
  const std::size_t globals = input.global_token_ids.size();
  builder.end_example(sparse::structure_from_example_ids(std::vector<std::int32_t>(sentence_ids.size(), 1),
                                                         std::vector<std::int32_t>(globals, 1), sentence_ids),
                      0);
  return builder.finish(true);
}

void TextEncoder::require_fit(const EncoderInput& input, const std::string& name) const {
  const CountedCall call = [&](const std::function<void()>& loaded) {
    ParameterSet parameters;
    const auto encoder = config_->make_encoder(parameters);
    for (const auto& parameter : parameters.all()) parameter->allocate();
    encoder->release_kernels(compute_);
    loaded();
    Tape tape(Recording::off);
    encoder->forward(tape, input, ForwardOptions{});
  };
  if (!fit_->fits(call)) fit_->refuse(name, input.long_tokens(), input.global_tokens(), call);
}

EncodedText TextEncoder::encode(std::string_view text, const std::string& name) const {
  data::require_text(text, name);
  EncodedText result;
  const EncoderInput input = input_of(text, name, result.tokens);
  if (fit_) require_fit(input, name);
  Tape tape(Recording::off);
  const EncoderStates states = encoder_->forward(tape, input, ForwardOptions{});
  result.token_ids = input.token_ids;
  result.long_states = states.long_states.value().to(Device::cpu);
  if (states.global_states.defined()) result.global_states = states.global_states.value().to(Device::cpu);
  result.mean = mean_of(result.long_states, 1, 1 + result.tokens.read);
  return result;
}

}  // namespace etc
