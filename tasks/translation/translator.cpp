#include "tasks/translation/translator.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/train/model.h"
#include "tasks/translation/vocabulary.h"

namespace etc::translation {

namespace fs = std::filesystem;

namespace {

Seq2SeqConfig config_of(const fs::path& folder) {
  const ModelConfig config = read_encoder_config(folder);
  if (const auto* const own = dynamic_cast<const Seq2SeqConfig*>(&*config)) return *own;
  fail(folder.string(), "model.kind: expected seq2seq, an encoder-decoder, got {}", model_kind_of(config->to_json()));
}

// Which vocabulary the models have; of all the same.
DataIdentity identity_of(const std::vector<fs::path>& folders) {
  const DataIdentity first = DataIdentity::of(read_model_config(folders.front()));
  for (const fs::path& folder : folders) {
    const DataIdentity own = DataIdentity::of(read_model_config(folder));
    if (own.vocab_sha256 == first.vocab_sha256) continue;
    fail(folder.string(), "the models of an ensemble have one vocabulary: expected SHA-256 {} as {} has, got {}",
         first.vocab_sha256, folders.front().string(), own.vocab_sha256);
  }
  return first;
}

fs::path vocabulary_of(const std::vector<fs::path>& folders, const DataIdentity& data, const fs::path& given) {
  if (!given.empty()) return given;
  if (!data.vocab_file.empty()) return folders.front() / data.vocab_file;
  fail_usage(folders.front().string(), "the folder holds no vocabulary: give that of the model's data with --vocab");
}

}  // namespace

struct Translator::Model {
  explicit Model(const fs::path& folder)
      : config(config_of(folder)), encoder(config, parameters), decoder(config, parameters) {
    load_parameters(folder / "model.safetensors", parameters);
  }

  Seq2SeqConfig config;
  ParameterSet parameters;
  Seq2SeqEncoder encoder;
  Seq2SeqDecoder decoder;
};

Translator::Translator(const std::vector<fs::path>& folders, const fs::path& vocab, const TranslatorCompute& compute) {
  if (folders.empty()) fail_usage("translate", "expected at least one model");
  const DataIdentity data = identity_of(folders);
  const fs::path file = vocabulary_of(folders, data, vocab);
  tokenizer_ = Vocabulary(file, data.vocab_sha256).tokenizer;
  tokens_ = search_tokens(*tokenizer_, file.string());
  for (const fs::path& folder : folders) {
    Model& model = *models_.emplace_back(std::make_unique<Model>(folder));
    for (const std::int64_t rows : {model.config.vocab_size, model.config.target_vocabulary()}) {
      if (rows == tokenizer_->vocab_size()) continue;
      fail(folder.string(), "expected tables of {} rows, as many as {} has pieces, got {}", tokenizer_->vocab_size(),
           file.string(), rows);
    }
    model.parameters.to(compute.device);
    model.encoder.release_kernels(compute.type);
    model.decoder.release_kernels(compute.type);
  }
}

Translator::~Translator() = default;

std::vector<std::int32_t> Translator::prefix_of(const SourceLine& line, std::int64_t number, std::int64_t most) const {
  if (data::invalid_utf8(line.prefix)) fail("translate", "line {}: its prefix is not UTF-8", number);
  std::vector<std::int32_t> ids = tokenizer_->encode_ids(line.prefix);
  if (std::ssize(ids) > most) {
    fail("translate", "line {}: its prefix: expected at most the {} pieces of a translation, got {}", number, most,
         ids.size());
  }
  for (const std::int32_t id : ids) {
    if (id == tokens_.pad || id == tokens_.end) fail("translate", "line {}: its prefix has a special piece", number);
  }
  return ids;
}

TranslationSource Translator::source_of(const SourceLine& line, std::int64_t number, const TranslateOptions& options,
                                        bool truncate) {
  if (data::invalid_utf8(line.text)) {
    log::warn("line {}: not UTF-8, its translation is an empty line", number);
    return {};
  }
  TranslationSource source{tokenizer_->encode_ids(line.text), {}};
  if (source.ids.empty()) return source;
  pieces_ += std::ssize(source.ids);
  unknown_ += std::count(source.ids.begin(), source.ids.end(), tokens_.unknown);
  const std::int64_t most = options.search.limit - 1;  // beside </s>
  if (std::ssize(source.ids) > most) {
    if (!truncate) {
      fail("translate", "line {}: expected at most {} pieces, got {} (--truncate-source cuts such lines)", number, most,
           source.ids.size());
    }
    source.ids.resize(static_cast<std::size_t>(most));
  }
  source.ids.push_back(tokens_.end);
  source.prefix = prefix_of(line, number, longest_translation(options.search, std::ssize(source.ids)));
  return source;
}

std::vector<std::vector<Translation>> Translator::translate(std::span<const SourceLine> lines, std::int64_t first_line,
                                                            TranslateOptions options, bool truncate) {
  options.search.tokens = tokens_;
  std::vector<TranslationSource> sources;
  for (const SourceLine& line : lines) {
    sources.push_back(source_of(line, first_line + std::ssize(sources), options, truncate));
  }
  std::vector<TranslationModel> models;
  for (const auto& model : models_) models.push_back({model->encoder, model->decoder});
  std::vector<std::vector<Translation>> translations;
  for (const std::vector<Hypothesis>& found : translation::translate(models, sources, options)) {
    std::vector<Translation>& of_line = translations.emplace_back();
    for (const Hypothesis& hypothesis : found) {
      of_line.push_back({sentence_of(*tokenizer_, hypothesis.tokens), hypothesis.score});
    }
  }
  return translations;
}

}  // namespace etc::translation
