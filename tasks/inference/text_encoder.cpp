#include "tasks/inference/text_encoder.h"

#include <algorithm>

#include "data/text/document.h"
#include "etc_core/base/error.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/feed/batch.h"
#include "tasks/train/kept_files.h"
#include "tasks/train/model.h"

namespace etc {

namespace {

constexpr std::int64_t kUsualLength = 4096;
constexpr std::int32_t kSentenceId = 1;  // vocabulary id of a sentence's global token (pretraining 2.2)

// Of either kind of vocabulary's published files (etc-core 11).
std::int32_t special_id(const data::Tokenizer& tokenizer, const char* wordpiece, const char* sentencepiece) {
  return tokenizer.piece_id(tokenizer.kind() == std::string_view("sentencepiece") ? sentencepiece : wordpiece);
}

std::filesystem::path vocabulary_of(const TextEncoderOptions& options, const DataIdentity& data,
                                    const std::string& where) {
  if (!options.vocab.empty()) return options.vocab;
  if (data.vocab_file.empty())
    fail_usage(where, "--text needs --vocab: the model's folder {} holds no vocabulary", options.model.string());
  return options.model / data.vocab_file;
}

// Of the rows whose token belongs to a sentence; none: of all.
std::vector<float> mean_of(const Tensor& states, std::span<const std::int32_t> sentences) {
  const bool any = std::any_of(sentences.begin(), sentences.end(), [](std::int32_t sentence) { return sentence >= 0; });
  std::vector<double> sums(static_cast<std::size_t>(states.cols()), 0);
  double rows = 0;
  for (std::int64_t row = 0; row < states.rows(); ++row) {
    if (any && sentences[static_cast<std::size_t>(row)] < 0) continue;
    ++rows;
    for (std::size_t h = 0; h < sums.size(); ++h)
      sums[h] += static_cast<double>(states.data()[row * states.cols() + static_cast<std::int64_t>(h)]);
  }
  std::vector<float> mean;
  for (const double sum : sums) mean.push_back(static_cast<float>(sum / rows));
  return mean;
}

// Of a model folder.
TextEncoderParts parts_of(const TextEncoderOptions& options, const std::string& where) {
  struct Loaded {
    ParameterSet parameters;
    std::unique_ptr<Encoder> encoder;
  };
  const auto loaded = std::make_shared<Loaded>();
  const ModelConfig config = read_encoder_config(options.model);
  loaded->encoder = config->make_encoder(loaded->parameters);
  const DataIdentity data = DataIdentity::of(read_model_config(options.model));
  const auto load = [loaded = loaded.get(), options] {
    load_parameters(options.model / "model.safetensors", loaded->parameters, Match::encoder);
    loaded->parameters.to(options.device);
    loaded->encoder->release_kernels(options.compute);
  };
  return {{loaded, loaded->encoder.get()}, config, load, data, vocabulary_of(options, data, where), options.model};
}

// Numbers of sentences: how many there are. Throws Error unless they are in order, with none left out.
std::int64_t count_sentences(std::span<const std::int32_t> sentences, const std::string& name) {
  std::int32_t last = -1;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const std::int32_t sentence = sentences[i];
    if (sentence < -1 || (sentence != -1 && sentence != last && sentence != last + 1))
      fail(name, "sentence of token {}: expected -1, {} or {}, got {}", i, std::max(last, 0), last + 1, sentence);
    last = std::max(last, sentence);
  }
  return last + 1;
}

}  // namespace

TextEncoder::TextEncoder(std::string where, const TextEncoderOptions& options)
    : TextEncoder(where, parts_of(options, where), options) {}

TextEncoder::TextEncoder(std::string where, TextEncoderParts parts, const TextEncoderOptions& options)
    : where_(std::move(where)), config_(parts.config), compute_(options.compute), encoder_(std::move(parts.encoder)) {
  if (!parts.vocab.empty()) take_vocabulary(parts);
  const std::int64_t room = config_->max_absolute_position_embeddings;
  longest_ = options.max_long_tokens > 0 ? options.max_long_tokens
             : room > 0                  ? std::min(room, kUsualLength)
                                         : kUsualLength;
  if (room > 0 && longest_ > room)
    fail_usage(where_, "--max-long-tokens: expected at most {}, the model's positions, got {}", room, longest_);
  if (longest_ < 3) fail_usage(where_, "--max-long-tokens: expected at least 3, got {}", longest_);
  if (options.memory_limit > 0) fit_.emplace(where_, options.memory_limit, options.device, *config_, compute_);
  if (parts.load) parts.load();
}

void TextEncoder::take_vocabulary(const TextEncoderParts& parts) {
  const Json& prepared = parts.data.preprocess_config;
  const bool lower_case = !prepared.is_object() || prepared.value("do_lower_case", true);
  tokenizer_ = data::load_tokenizer(parts.vocab, {.do_lower_case = lower_case});
  if (!parts.data.vocab_sha256.empty() && tokenizer_->vocab_sha256() != parts.data.vocab_sha256) {
    fail(parts.vocab.string(), "another vocabulary than the model's: expected SHA-256 {}, got {}",
         parts.data.vocab_sha256, tokenizer_->vocab_sha256());
  }
  if (tokenizer_->vocab_size() > config_->vocab_size) {
    fail(parts.vocab.string(), "the vocabulary has {} pieces: expected at most the model's vocab_size {}",
         tokenizer_->vocab_size(), config_->vocab_size);
  }
  const std::string tables = parts.tables.empty() ? "" : splitter_in(parts.tables);
  splitter_ = data::load_splitter(tables.empty() ? "icu" : tables);
  cls_ = special_id(*tokenizer_, "[CLS]", "<unused_63>");
  sep_ = special_id(*tokenizer_, "[SEP]", "<unused_2>");
}

TextIds TextEncoder::ids_of(std::string_view text, const std::string& name, EncodedText& result) const {
  const bool sentences = config_->has_global_tokens();
  const std::int64_t most = longest_ - (sentences ? 1 : 2);  // beside CLS and SEP
  const std::int64_t most_sentences =
      config_->max_absolute_position_embeddings > 0 ? config_->max_absolute_position_embeddings : most;
  TokenCount& tokens = result.tokens;
  result.token_ids = {cls_};
  result.sentence_ids = {-1};
  std::int32_t number = 0;
  for (const data::ByteSpan& span : splitter_->split(text)) {
    const auto ids = tokenizer_->encode_ids(
        text.substr(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end - span.begin)));
    const std::int64_t room = number < most_sentences ? most - tokens.read : 0;
    const std::int64_t kept = std::min(std::ssize(ids), tokens.cut > 0 ? 0 : room);
    result.token_ids.insert(result.token_ids.end(), ids.begin(), ids.begin() + kept);
    result.sentence_ids.insert(result.sentence_ids.end(), static_cast<std::size_t>(kept), number);
    if (kept > 0) ++number;
    tokens.read += kept;
    tokens.cut += std::ssize(ids) - kept;
  }
  if (tokens.read == 0) fail(name, "the text has no token in the model's vocabulary");
  if (!sentences) {
    result.token_ids.push_back(sep_);
    result.sentence_ids.push_back(-1);
  }
  return {result.token_ids, result.sentence_ids};
}

EncoderInput TextEncoder::input_of(const TextIds& text) const {
  feed::BatchBuilder builder(*config_);
  EncoderInput& input = builder.input();
  const std::int32_t last = *std::max_element(text.sentences.begin(), text.sentences.end());
  const std::vector<std::int32_t> sentence_ids(text.sentences.begin(), text.sentences.end());
  input.token_ids.assign(text.ids.begin(), text.ids.end());
  input.global_token_ids.assign(static_cast<std::size_t>(last + 1), kSentenceId);
  if (!config_->has_global_tokens()) input.segment_ids.resize(input.token_ids.size(), 0);
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

EncodedText TextEncoder::run(const TextIds& text, const std::string& name, EncodedText result) const {
  const EncoderInput input = input_of(text);
  if (fit_) require_fit(input, name);
  Tape tape(Recording::off);
  const EncoderStates states = encoder_->forward(tape, input, ForwardOptions{});
  result.long_states = states.long_states.value().to(Device::cpu);
  if (states.global_states.defined()) result.global_states = states.global_states.value().to(Device::cpu);
  result.mean = mean_of(result.long_states, text.sentences);
  return result;
}

EncodedText TextEncoder::encode(std::string_view text, const std::string& name) const {
  if (!tokenizer_) fail_usage(where_, "texts need the model's vocabulary, and there is none: expected token ids");
  data::require_text(text, name);
  EncodedText result;
  const TextIds ids = ids_of(text, name, result);
  return run(ids, name, std::move(result));
}

EncodedText TextEncoder::encode(const TextIds& text, const std::string& name) const {
  const std::int64_t sentences = count_sentences(text.sentences, name);
  if (text.ids.empty()) fail(name, "expected at least one token, got none");
  for (const auto& [what, count] : {std::pair("tokens", std::ssize(text.ids)), std::pair("sentences", sentences)}) {
    if (count > longest_) fail(name, "expected at most {} {}, got {}", longest_, what, count);
  }
  EncodedText result;
  result.token_ids.assign(text.ids.begin(), text.ids.end());
  result.sentence_ids.assign(text.sentences.begin(), text.sentences.end());
  result.tokens.read = std::ssize(text.ids);
  const TextIds own{result.token_ids, result.sentence_ids};
  return run(own, name, std::move(result));
}

}  // namespace etc
