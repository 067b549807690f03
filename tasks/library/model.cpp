#include <algorithm>
#include <mutex>

#include "etc_core/base/error.h"
#include "etc_core/base/words.h"
#include "etc_core/checkpoint/convert/dense/foreign_encoder.h"
#include "etc_core/checkpoint/convert/memory_source.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "tasks/inference/document_model.h"
#include "tasks/inference/raw_preparation.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/library/entry.h"
#include "tasks/library/tokenizer_impl.h"
#include "tasks/registry.h"
#include "tasks/text/json_field.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/run_config.h"

namespace longetc {

namespace {

constexpr const char* kWhere = "longetc";

// An encoder and its parameters.
struct OwnedEncoder {
  etc::ParameterSet parameters;
  std::unique_ptr<etc::Encoder> encoder;
};

// Checks the keys of section `task` that replace the checkpoint's.
void check_decoding(const std::string& text, const std::string& task) {
  const etc::Json given = etc::parse_json(text, "longetc: decoding");
  if (!given.is_object()) etc::fail_usage(kWhere, "decoding: expected an object, got {}", etc::json_line(given));
  if (given.empty()) return;
  if (task.empty()) etc::fail_usage(kWhere, "decoding: expected {{}} for an encoder without a task, got {}", text);
  std::vector<std::string> known;
  for (const etc::Field& field : etc::task_kind(task).keys) {
    if (field.mark == etc::kDecoding) known.push_back(field.name);
  }
  for (const auto& [key, value] : given.items()) {
    const etc::Field* const field = etc::task_kind(task).keys.find(key);
    if (field == nullptr || field->mark != etc::kDecoding) {
      etc::fail_usage(kWhere, "decoding: {} is no option of a model of task {}{}", key, task,
                      etc::suggestion(key, known));
    }
    etc::require_meant(*field, value, kWhere, "decoding: " + key);
  }
}

// Checks the options as far as possible without the weights. task: the model's, or empty.
void check_options(const LoadOptions& options, const std::string& task) {
  // For `auto` the fastest type must be measured, which waits for the first call.
  etc::chosen_types(options.compute == "auto" ? "fp32" : options.compute, options.scores, etc::Device::cpu);
  if (options.memory_limit < 0) {
    etc::fail_usage(kWhere, "memory_limit: expected 0 (none) or a number of bytes, got {}", options.memory_limit);
  }
  if (options.max_long_tokens != 0 && options.max_long_tokens < 3) {
    etc::fail_usage(kWhere, "max_long_tokens: expected 0 (as many as usual) or at least 3, got {}",
                    options.max_long_tokens);
  }
  check_decoding(options.decoding, task);
  if (!task.empty()) etc::require_splitter_of(task, options.splitter, kWhere);
}

etc::TextEncoderOptions encoder_options(const std::string& folder, const LoadOptions& options) {
  etc::TextEncoderOptions own;
  own.model = folder;
  own.vocab = options.vocabulary;
  own.splitter = options.splitter;
  own.types = etc::chosen_types(options.compute, options.scores, etc::Device::cpu);
  own.memory_limit = options.memory_limit;
  own.max_long_tokens = options.max_long_tokens;
  return own;
}

// The encoder of weights in memory, not yet packed; config: its section `model`.
std::shared_ptr<OwnedEncoder> read_weights(const Weights& weights, etc::ModelConfig& config) {
  std::vector<etc::convert::MemoryTensor> tensors;
  for (const Array& array : weights.arrays) tensors.push_back({array.name, array.shape, array.type, array.data});
  const etc::convert::MemorySource source(tensors, "weights");
  const etc::Json json = etc::parse_json(weights.config, "weights: config");
  const auto own = std::make_shared<OwnedEncoder>();
  if (weights.family == "etc") {
    if (!json.is_object()) etc::fail_usage("weights: config", "expected an object, got {}", etc::json_line(json));
    config = etc::model_config_from_json(json.contains("model") ? json["model"] : json, "weights: config",
                                         etc::UnknownKeys::refuse);
    own->encoder = config->make_encoder(own->parameters);
    etc::convert::read_own(source, own->parameters);
    return own;
  }
  const auto& families = etc::convert::foreign_families();
  if (std::find(families.begin(), families.end(), weights.family) == families.end())
    etc::fail_usage("weights", "family {}: expected etc or one of {}", weights.family, fmt::join(families, ", "));
  const auto foreign = etc::convert::foreign_encoder(weights.family, json, "weights: config", source);
  foreign.config.validate();
  etc::ParameterSet read;
  etc::convert::read_foreign(source, foreign, false, read);
  config = foreign.config;
  own->encoder = config->make_encoder(own->parameters);
  for (const auto& parameter : own->parameters.all()) parameter->value = read.at(parameter->name).value;
  return own;
}

// The requested numbers of one text.
struct Rows {
  std::shared_ptr<const float> owner;  // [rows, H]
  std::int64_t rows = 0;
};

Rows rows_of(etc::EncodedText&& text, States states) {
  if (states == States::mean) {
    const auto mean = std::make_shared<std::vector<float>>(std::move(text.mean));
    return {{mean, mean->data()}, 1};
  }
  const auto tensor =
      std::make_shared<etc::Tensor>(states == States::long_states ? text.long_states : text.global_states);
  return {{tensor, tensor->data()}, tensor->rows()};
}

// Collects the states of texts.
class Collector {
 public:
  Collector(const etc::TextEncoder& encoder, States states) : states_(states) {
    result_.columns = encoder.model().hidden_size;
  }

  void add(etc::EncodedText&& text) {
    Tokens& tokens = result_.tokens;
    tokens.ids.insert(tokens.ids.end(), text.token_ids.begin(), text.token_ids.end());
    tokens.offsets.push_back(std::ssize(tokens.ids));
    result_.sentences.insert(result_.sentences.end(), text.sentence_ids.begin(), text.sentence_ids.end());
    result_.read.push_back(text.tokens.read);
    result_.cut.push_back(text.tokens.cut);
    parts_.push_back(rows_of(std::move(text), states_));
    result_.rows += parts_.back().rows;
    result_.offsets.push_back(result_.rows);
  }

  Encoded finish() {
    if (parts_.size() == 1) {
      result_.states = std::move(parts_.front().owner);
      return std::move(result_);
    }
    const auto count = static_cast<std::size_t>(result_.rows * result_.columns);
    std::shared_ptr<float[]> all(new float[count]);
    float* to = all.get();
    for (Rows& part : parts_) {
      to = std::copy_n(part.owner.get(), part.rows * result_.columns, to);
      part.owner.reset();
    }
    result_.states = {all, all.get()};
    return std::move(result_);
  }

 private:
  States states_;
  Encoded result_;
  std::vector<Rows> parts_;
};

void require_states(const etc::TextEncoder& encoder, States states) {
  if (states == States::global_states && !encoder.model().has_global_tokens())
    etc::fail_usage(kWhere, "the model has no global tokens: expected long_states or mean, got global_states");
}

void require_offsets(const TokenInput& input) {
  if (input.texts < 0) etc::fail_usage(kWhere, "texts: expected 0 or more, got {}", input.texts);
  if (input.texts > 0 && input.offsets == nullptr) etc::fail_usage(kWhere, "offsets: expected a vector, got null");
  for (std::int64_t i = 0; i < input.texts; ++i) {
    if ((i > 0 || input.offsets[0] == 0) && input.offsets[i + 1] > input.offsets[i]) continue;
    etc::fail_usage(kWhere, "offsets of text {}: expected ascending numbers from 0 on, got {} and {}", i,
                    input.offsets[i], input.offsets[i + 1]);
  }
  if (input.texts > 0 && input.ids == nullptr) etc::fail_usage(kWhere, "ids: expected a vector, got null");
}

etc::data::DocumentForm form_of(DocumentForm form, std::string_view document) {
  switch (form) {
    case DocumentForm::plain:
      return etc::data::DocumentForm::plain;
    case DocumentForm::markdown:
      return etc::data::DocumentForm::markdown;
    case DocumentForm::html:
      return etc::data::DocumentForm::html;
    case DocumentForm::automatic:
      break;
  }
  return etc::data::form_of({}, document);
}

}  // namespace

// Weights are held once: the record model shares its encoder with the text encoder.
struct Model::Impl {
  std::filesystem::path folder;  // empty: weights in memory
  LoadOptions options;
  etc::Json config;
  std::shared_ptr<etc::RecordModel> records;  // null: not needed yet
  std::unique_ptr<etc::TextEncoder> texts;
  std::mutex mutex;

  etc::RecordModel& record_model(etc::DocumentUse use = etc::DocumentUse::none) {
    if (records) return *records;
    if (folder.empty()) etc::fail_usage(kWhere, "the model is an encoder of weights in memory, without a task's head");
    etc::RecordModelOptions own;
    own.model = folder;
    own.vocab = options.vocabulary;
    own.splitter = options.splitter;
    own.task = etc::parse_json(options.decoding, "longetc: decoding");
    own.compute = options.compute;
    own.scores = options.scores;
    own.memory_limit = options.memory_limit;
    own.use = use;
    texts.reset();
    records = std::make_shared<etc::RecordModel>(kWhere, own);
    return *records;
  }

  etc::TextEncoder& text_encoder() {
    if (texts) return *texts;
    const etc::TextEncoderOptions own = encoder_options(folder.string(), options);
    if (records) {
      const etc::TaskModel& model = records->running().model;
      texts = std::make_unique<etc::TextEncoder>(kWhere,
                                                 etc::TextEncoderParts{.encoder = {records, model.encoder.get()},
                                                                       .config = model.config,
                                                                       .data = etc::DataIdentity::of(config),
                                                                       .vocab = vocabulary(),
                                                                       .tables = folder},
                                                 own);
    } else {
      texts = std::make_unique<etc::TextEncoder>(kWhere, own);
    }
    return *texts;
  }

  // The vocabulary file; throws UsageError if none is known.
  std::filesystem::path vocabulary() const {
    if (!options.vocabulary.empty()) return options.vocabulary;
    const std::string kept = folder.empty() ? "" : etc::DataIdentity::of(config).vocab_file;
    if (kept.empty()) etc::fail_usage(kWhere, "the model keeps no vocabulary: expected one in LoadOptions");
    return folder / kept;
  }

  // Answers about the user's own text.
  std::string answer(std::string_view document, DocumentForm form, const std::string& question, bool asks) {
    const etc::DocumentUse use = asks ? etc::DocumentUse::ask : etc::DocumentUse::keyphrases;
    etc::RecordModel& model = record_model(use);
    etc::require_documents(folder, model.task(), use, kWhere);
    return etc::text::one_line(etc::answer_document(model, document, form_of(form, document), question, "document"));
  }
};

Model::Model(const std::string& folder, const LoadOptions& options) : impl_(std::make_unique<Impl>()) {
  guarded([&] {
    impl_->folder = etc::model_folder(folder);
    impl_->options = options;
    impl_->config = etc::read_model_config(impl_->folder);
    check_options(options, etc::named_task(impl_->config));
    etc::read_encoder_config(impl_->folder);
    const etc::TensorFileReader weights(impl_->folder / "model.safetensors");
  });
}

Model::Model(const Weights& weights, const LoadOptions& options) : impl_(std::make_unique<Impl>()) {
  guarded([&] {
    impl_->options = options;
    check_options(options, "");
    const etc::TextEncoderOptions own = encoder_options("", options);
    etc::ModelConfig config;
    const auto encoder = read_weights(weights, config);
    encoder->encoder->release_kernels(own.types);
    impl_->config = {{"model", config->to_json()}};
    impl_->texts = std::make_unique<etc::TextEncoder>(
        kWhere,
        etc::TextEncoderParts{.encoder = {encoder, encoder->encoder.get()}, .config = config, .vocab = own.vocab}, own);
  });
}

Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

std::string Model::task() const {
  return etc::named_task(impl_->config);
}

std::string Model::config() const {
  return etc::json_text(impl_->config);
}

Tokenizer Model::tokenizer() const {
  return guarded([&] {
    const etc::Json& prepared = etc::DataIdentity::of(impl_->config).preprocess_config;
    const bool lower_case = !prepared.is_object() || prepared.value("do_lower_case", true);
    return Tokenizer(std::make_shared<Tokenizer::Impl>(
        Tokenizer::Impl{etc::data::load_tokenizer(impl_->vocabulary(), {.do_lower_case = lower_case})}));
  });
}

Encoded Model::encode(const std::vector<std::string>& texts, States states, const Progress& progress) {
  return guarded_long(progress, [&](LongCall& call) {
    const std::lock_guard lock(impl_->mutex);
    etc::TextEncoder& encoder = impl_->text_encoder();
    require_states(encoder, states);
    Collector collector(encoder, states);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      call.report({"encode", "texts", "", static_cast<std::int64_t>(i), std::ssize(texts)});
      collector.add(encoder.encode(texts[i], fmt::format("text {}", i)));
    }
    return collector.finish();
  });
}

Encoded Model::encode(const TokenInput& input, States states, const Progress& progress) {
  return guarded_long(progress, [&](LongCall& call) {
    const std::lock_guard lock(impl_->mutex);
    etc::TextEncoder& encoder = impl_->text_encoder();
    require_states(encoder, states);
    require_offsets(input);
    Collector collector(encoder, states);
    for (std::int64_t i = 0; i < input.texts; ++i) {
      call.report({"encode", "texts", "", i, input.texts});
      const auto count = static_cast<std::size_t>(input.offsets[i + 1] - input.offsets[i]);
      const std::vector<std::int32_t> first(input.sentences == nullptr ? count : 0, 0);
      const std::int32_t* const sentences =
          input.sentences == nullptr ? first.data() : input.sentences + input.offsets[i];
      collector.add(
          encoder.encode({{input.ids + input.offsets[i], count}, {sentences, count}}, fmt::format("text {}", i)));
    }
    return collector.finish();
  });
}

std::string Model::predict(const std::string& record) {
  return guarded([&] {
    const std::lock_guard lock(impl_->mutex);
    etc::RecordModel& model = impl_->record_model();
    const auto examples = model.prepare(etc::parse_json(record, "record"), "record");
    return etc::text::one_line(model.answer(examples, "record"));
  });
}

std::string Model::ask(std::string_view document, const std::string& question, DocumentForm form) {
  return guarded([&] {
    const std::lock_guard lock(impl_->mutex);
    return impl_->answer(document, form, question, true);
  });
}

std::string Model::keyphrases(std::string_view document, DocumentForm form) {
  return guarded([&] {
    const std::lock_guard lock(impl_->mutex);
    return impl_->answer(document, form, "", false);
  });
}

}  // namespace longetc
