#include "tasks/inference/text_encoder.h"

#include <algorithm>

#include "data/text/document.h"
#include "etc_core/base/error.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/seq2seq/config.h"
#include "tasks/feed/batch.h"
#include "tasks/registry.h"
#include "tasks/text/special_pieces.h"
#include "tasks/train/kept_files.h"
#include "tasks/train/model.h"
#include "tasks/train/run_config.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kUsualLength = 4096;
constexpr std::int32_t kSentenceId = 1;  // vocabulary id of a sentence's global token (pretraining 2.2)

fs::path vocabulary_of(const TextEncoderOptions& options, const DataIdentity& data, const std::string& where) {
  if (!options.vocab.empty()) return options.vocab;
  if (data.vocab_file.empty())
    fail_usage(where, "--text needs --vocab: the model's folder {} holds no vocabulary", options.model.string());
  return options.model / data.vocab_file;
}

// Rows [first, end) of x, on the host.
Tensor rows_of(const Tensor& x, std::int64_t first, std::int64_t end) {
  if (first == 0 && end == x.rows()) return x;
  Tensor rows = Tensor::empty({end - first, x.cols()}, Purpose::activations);
  std::copy(x.data() + first * x.cols(), x.data() + end * x.cols(), rows.data());
  return rows;
}

// The mean over the rows whose token belongs to a sentence; if there are none, over all rows.
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

// Throws UsageError for a model of a task that does not read texts one by one. Its vocabulary has no [CLS] or [SEP],
// and a message about these would not explain the cause.
void require_reads_texts(const fs::path& folder, const EncoderConfig& config, const std::string& where) {
  const std::string task = named_task(read_model_config(folder));
  constexpr const char* kExpected = "--model: expected an encoder that reads texts";
  if (const TaskEntry* const own = find_task(task)) {
    if (own->translator.open != nullptr)
      fail_usage(where, "{}, got a model of {} (etc translate reads lines with it)", kExpected, task);
    if (own->task.texts_go_on) fail_usage(where, "{}, got a model of {}", kExpected, task);
  }
  if (dynamic_cast<const Seq2SeqConfig*>(&config) == nullptr) return;
  fail_usage(where, "{}, got an encoder-decoder (etc translate reads lines with it)", kExpected);
}

// The parts of a model folder; its encoder may already be in memory.
TextEncoderParts parts_of(const TextEncoderOptions& options, const std::string& where, Encoder* in_memory) {
  const ModelConfig config = read_encoder_config(options.model);
  require_reads_texts(options.model, *config, where);
  const DataIdentity data = DataIdentity::of(read_model_config(options.model));
  TextEncoderParts parts{{}, config, {}, data, vocabulary_of(options, data, where), options.model};
  if (in_memory != nullptr) {
    parts.encoder = {std::shared_ptr<void>(), in_memory};
    return parts;
  }
  if (data.vocab_sha256.empty()) warn_unknown_vocabulary(options.model);
  struct Loaded {
    ParameterSet parameters;
    std::unique_ptr<Encoder> encoder;
  };
  const auto loaded = std::make_shared<Loaded>();
  loaded->encoder = config->make_encoder(loaded->parameters);
  parts.encoder = {loaded, loaded->encoder.get()};
  parts.load = [loaded = loaded.get(), options] {
    map_parameters(options.model / "model.safetensors", loaded->parameters, Match::encoder);
    loaded->parameters.to(options.device);
    loaded->encoder->release_kernels(options.types);
  };
  return parts;
}

// The number of sentences. Throws Error unless they are numbered in order without gaps.
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

StateRows state_rows(const EncodedText& text, const std::string& states) {
  if (states == "mean") return {text.mean.data(), 1, std::ssize(text.mean)};
  const Tensor& tensor = states == "long" ? text.long_states : text.global_states;
  return {tensor.data(), tensor.rows(), tensor.cols()};
}

Json states_answer(const Json& id, const EncodedText& text, const std::string& states) {
  const StateRows rows = state_rows(text, states);
  Json all = Json::array();
  for (std::int64_t r = 0; r < rows.rows; ++r)
    all.push_back(std::vector<float>(rows.data + r * rows.columns, rows.data + (r + 1) * rows.columns));
  return {{"id", id},
          {"tokens", {{"read", text.tokens.read}, {"cut", text.tokens.cut}}},
          {"states", states == "mean" ? all.front() : all}};
}

TextEncoder::TextEncoder(std::string where, const TextEncoderOptions& options)
    : TextEncoder(where, parts_of(options, where, nullptr), options) {}

TextEncoder::TextEncoder(std::string where, const TextEncoderOptions& options, Encoder& loaded)
    : TextEncoder(where, parts_of(options, where, &loaded), options) {}

TextEncoder::TextEncoder(std::string where, TextEncoderParts parts, const TextEncoderOptions& options)
    : where_(std::move(where)), config_(parts.config), types_(options.types), encoder_(std::move(parts.encoder)) {
  if (!parts.vocab.empty()) take_vocabulary(parts, options.splitter);
  const std::int64_t room = config_->max_absolute_position_embeddings;
  longest_ = options.max_long_tokens > 0 ? options.max_long_tokens
             : room > 0                  ? std::min(room, kUsualLength)
                                         : kUsualLength;
  if (room > 0 && longest_ > room)
    fail_usage(where_, "--max-long-tokens: expected at most {}, the model's positions, got {}", room, longest_);
  if (longest_ < 3) fail_usage(where_, "--max-long-tokens: expected at least 3, got {}", longest_);
  if (options.memory_limit > 0) fit_.emplace(where_, options.memory_limit, options.device, *config_, types_);
  if (parts.load) parts.load();
}

void TextEncoder::take_vocabulary(const TextEncoderParts& parts, const std::string& splitter) {
  const Json& prepared = parts.data.preprocess_config;
  const bool lower_case = !prepared.is_object() || prepared.value("do_lower_case", true);
  tokenizer_ = data::load_tokenizer(parts.vocab, {.do_lower_case = lower_case});
  parts.data.require_vocabulary(tokenizer_->vocab_sha256(), parts.vocab);
  if (tokenizer_->vocab_size() > config_->vocab_size) {
    fail(parts.vocab.string(), "the vocabulary has {} pieces: expected at most the model's vocab_size {}",
         tokenizer_->vocab_size(), config_->vocab_size);
  }
  const std::string kept = parts.tables.empty() ? "" : splitter_in(parts.tables);
  const std::string& cut_by = splitter.empty() ? kept : splitter;
  splitter_ = data::load_splitter(cut_by.empty() ? "icu" : cut_by);
  cls_ = text::special_id(*tokenizer_, text::kClsPiece);
  sep_ = text::special_id(*tokenizer_, text::kSepPiece);
}

PreparedText TextEncoder::prepare(std::string_view text, const std::string& name) const {
  if (!tokenizer_) fail_usage(where_, "texts need the model's vocabulary, and there is none: expected token ids");
  data::require_text(text, name);
  const bool sentences = config_->has_global_tokens();
  const std::int64_t most = longest_ - (sentences ? 1 : 2);  // in addition to CLS and SEP
  const std::int64_t most_sentences =
      config_->max_absolute_position_embeddings > 0 ? config_->max_absolute_position_embeddings : most;
  PreparedText prepared;
  TokenCount& tokens = prepared.tokens;
  prepared.token_ids.push_back(cls_);
  prepared.sentence_ids.push_back(-1);
  for (const data::ByteSpan& span : splitter_->split(text)) {
    const auto sentence =
        text.substr(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.end - span.begin));
    std::vector<std::int32_t> ids;
    prepared.sentences == 0 ? tokenizer_->append_ids(sentence, ids) : tokenizer_->append_word_ids(sentence, ids);
    const std::int64_t room = prepared.sentences < most_sentences ? most - tokens.read : 0;
    const std::int64_t kept = std::min(std::ssize(ids), tokens.cut > 0 ? 0 : room);
    prepared.token_ids.insert(prepared.token_ids.end(), ids.begin(), ids.begin() + kept);
    prepared.sentence_ids.insert(prepared.sentence_ids.end(), static_cast<std::size_t>(kept),
                                 static_cast<std::int32_t>(prepared.sentences));
    if (kept > 0) ++prepared.sentences;
    tokens.read += kept;
    tokens.cut += std::ssize(ids) - kept;
  }
  if (tokens.read == 0) fail(name, "the text has no token in the model's vocabulary");
  if (!sentences) {
    prepared.token_ids.push_back(sep_);
    prepared.sentence_ids.push_back(-1);
  }
  return prepared;
}

PreparedText TextEncoder::prepare(const TextIds& text, const std::string& name) const {
  const std::int64_t sentences = count_sentences(text.sentences, name);
  if (text.ids.empty()) fail(name, "expected at least one token, got none");
  for (const auto& [what, count] : {std::pair("tokens", std::ssize(text.ids)), std::pair("sentences", sentences)}) {
    if (count > longest_) fail(name, "expected at most {} {}, got {}", longest_, what, count);
  }
  PreparedText prepared;
  prepared.token_ids.assign(text.ids.begin(), text.ids.end());
  prepared.sentence_ids.assign(text.sentences.begin(), text.sentences.end());
  prepared.sentences = sentences;
  prepared.tokens.read = std::ssize(text.ids);
  return prepared;
}

EncoderInput TextEncoder::input_of(std::span<const PreparedText> texts) const {
  const bool sentences = config_->has_global_tokens();
  feed::BatchBuilder builder(*config_);
  EncoderInput& input = builder.input();
  for (const PreparedText& text : texts) {
    const auto globals = static_cast<std::size_t>(text.sentences);
    input.token_ids.insert(input.token_ids.end(), text.token_ids.begin(), text.token_ids.end());
    input.global_token_ids.insert(input.global_token_ids.end(), globals, kSentenceId);
    if (!sentences) input.segment_ids.resize(input.token_ids.size(), 0);
    builder.end_example(sparse::structure_from_example_ids(std::vector<std::int32_t>(text.token_ids.size(), 1),
                                                           std::vector<std::int32_t>(globals, 1), text.sentence_ids),
                        0);
  }
  return builder.finish(true);
}

CountedCall TextEncoder::counted(std::span<const PreparedText> texts) const {
  return [this, texts](const std::function<void()>& loaded) {
    ParameterSet parameters;
    const auto encoder = config_->make_encoder(parameters);
    for (const auto& parameter : parameters.all()) parameter->allocate();
    encoder->release_kernels(types_);
    loaded();
    const EncoderInput input = input_of(texts);
    Tape tape(Recording::off);
    encoder->forward(tape, input, ForwardOptions{});
  };
}

std::vector<EncodedText> TextEncoder::encode(std::span<const PreparedText> texts) const {
  const EncoderInput input = input_of(texts);
  Tape tape(Recording::off);
  const EncoderStates states = encoder_->forward(tape, input, ForwardOptions{});
  const Tensor longs = states.long_states.value().to(Device::cpu);
  const Tensor globals = states.global_states.defined() ? states.global_states.value().to(Device::cpu) : Tensor();
  std::vector<EncodedText> results;
  for (std::size_t b = 0; b < texts.size(); ++b) {
    EncodedText result;
    result.token_ids = texts[b].token_ids;
    result.sentence_ids = texts[b].sentence_ids;
    result.tokens = texts[b].tokens;
    result.long_states = rows_of(longs, input.long_offsets[b], input.long_offsets[b + 1]);
    if (globals) result.global_states = rows_of(globals, input.global_offsets[b], input.global_offsets[b + 1]);
    result.mean = mean_of(result.long_states, result.sentence_ids);
    results.push_back(std::move(result));
  }
  return results;
}

EncodedText TextEncoder::encode_alone(const PreparedText& text, const std::string& name) const {
  const std::span<const PreparedText> alone(&text, 1);
  if (fit_ && !fit_->fits(counted(alone))) {
    fit_->refuse(name, std::ssize(text.token_ids), text.sentences, counted(alone));
  }
  return std::move(encode(alone).front());
}

EncodedText TextEncoder::encode(std::string_view text, const std::string& name) const {
  return encode_alone(prepare(text, name), name);
}

EncodedText TextEncoder::encode(const TextIds& text, const std::string& name) const {
  return encode_alone(prepare(text, name), name);
}

}  // namespace etc
