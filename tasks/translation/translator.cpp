#include "tasks/translation/translator.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/train/model.h"
#include "tasks/translation/decode/translate.h"
#include "tasks/translation/vocabulary.h"

namespace etc::translation {

namespace fs = std::filesystem;

namespace {

struct Options : SearchOptions {
  std::int64_t batch_tokens = 4096;
  bool truncate_source = false;
};

const FieldList<Options>& options_fields() {
  using O = Options;
  static const FieldList<O> kFields{
      {"beam", &O::beam, "hypotheses that are followed; 1: greedy", {.least = 1}},
      {"length_penalty", &O::length_penalty,
       "scores are divided by length^this: 0 the sum, 1 the mean of log-probabilities"},
      {"unknown_penalty", &O::unknown_penalty, "taken off the log-probability of <unk>"},
      {"max_len_a",
       &O::max_len_a,
       "a translation has at most this times the source's pieces and --max-len-b",
       {.least = 0}},
      {"max_len_b", &O::max_len_b, "pieces that a translation may always have", {.least = 1}},
      {"min_len", &O::min_len, "pieces that a translation has at least", {.least = 0}},
      {"positions", &O::limit, "pieces of a sentence with </s> at most", {.least = 2}},
      {"batch_tokens", &O::batch_tokens, "pieces of sources that are searched together", {.least = 1}},
      {"truncate_source", &O::truncate_source, "cut longer lines, which are errors otherwise"},
  };
  return kFields;
}

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

struct Model {
  explicit Model(const fs::path& folder)
      : config(config_of(folder)), encoder(config, parameters), decoder(config, parameters) {
    load_parameters(folder / "model.safetensors", parameters);
  }

  Seq2SeqConfig config;
  ParameterSet parameters;
  Seq2SeqEncoder encoder;
  Seq2SeqDecoder decoder;
};

class Translator final : public LineTranslator {
 public:
  Translator(const std::vector<fs::path>& folders, const fs::path& vocab, const Options& options,
             const TranslatorCompute& compute);

  std::vector<std::vector<LineTranslation>> translate(std::span<const SourceLine> lines,
                                                      std::int64_t first_line) override;
  std::int64_t most() const override { return options_.beam; }
  std::int64_t pieces() const override { return pieces_; }  // without </s>
  std::int64_t unknown_pieces() const override { return unknown_; }

 private:
  TranslationSource source_of(const SourceLine& line, std::int64_t number);
  std::vector<std::int32_t> prefix_of(const SourceLine& line, std::int64_t number, std::int64_t most) const;

  Options options_;
  std::vector<std::unique_ptr<Model>> models_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::int64_t pieces_ = 0, unknown_ = 0;
};

Translator::Translator(const std::vector<fs::path>& folders, const fs::path& vocab, const Options& options,
                       const TranslatorCompute& compute)
    : options_(options) {
  if (folders.empty()) fail_usage("translate", "expected at least one model");
  const DataIdentity data = identity_of(folders);
  const fs::path file = vocabulary_of(folders, data, vocab);
  tokenizer_ = Vocabulary(file, data.vocab_sha256).tokenizer;
  options_.tokens = search_tokens(*tokenizer_, file.string());
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

std::vector<std::int32_t> Translator::prefix_of(const SourceLine& line, std::int64_t number, std::int64_t most) const {
  if (data::invalid_utf8(line.prefix)) fail("translate", "line {}: its prefix is not UTF-8", number);
  std::vector<std::int32_t> ids = tokenizer_->encode_ids(line.prefix);
  if (std::ssize(ids) > most) {
    fail("translate", "line {}: its prefix: expected at most the {} pieces of a translation, got {}", number, most,
         ids.size());
  }
  for (const std::int32_t id : ids) {
    if (id == options_.tokens.pad || id == options_.tokens.end)
      fail("translate", "line {}: its prefix has a special piece", number);
  }
  return ids;
}

TranslationSource Translator::source_of(const SourceLine& line, std::int64_t number) {
  if (data::invalid_utf8(line.text)) {
    log::warn("line {}: not UTF-8, its translation is an empty line", number);
    return {};
  }
  TranslationSource source{tokenizer_->encode_ids(line.text), {}};
  if (source.ids.empty()) return source;
  pieces_ += std::ssize(source.ids);
  unknown_ += std::count(source.ids.begin(), source.ids.end(), options_.tokens.unknown);
  const std::int64_t most = options_.limit - 1;  // beside </s>
  if (std::ssize(source.ids) > most) {
    if (!options_.truncate_source) {
      fail("translate", "line {}: expected at most {} pieces, got {} (--truncate-source cuts such lines)", number, most,
           source.ids.size());
    }
    source.ids.resize(static_cast<std::size_t>(most));
  }
  source.ids.push_back(options_.tokens.end);
  source.prefix = prefix_of(line, number, longest_translation(options_, std::ssize(source.ids)));
  return source;
}

std::vector<std::vector<LineTranslation>> Translator::translate(std::span<const SourceLine> lines,
                                                                std::int64_t first_line) {
  std::vector<TranslationSource> sources;
  for (const SourceLine& line : lines) sources.push_back(source_of(line, first_line + std::ssize(sources)));
  std::vector<TranslationModel> models;
  for (const auto& model : models_) models.push_back({model->encoder, model->decoder});
  std::vector<std::vector<LineTranslation>> translations;
  for (const auto& found : translation::translate(models, sources, {options_, options_.batch_tokens})) {
    std::vector<LineTranslation>& of_line = translations.emplace_back();
    for (const Hypothesis& hypothesis : found) {
      of_line.push_back({sentence_of(*tokenizer_, hypothesis.tokens), hypothesis.score});
    }
  }
  return translations;
}

}  // namespace

const TranslatorKind& translator_kind() {
  static const TranslatorKind kKind{options_fields(), [](const std::vector<fs::path>& folders, const fs::path& vocab,
                                                         const Json& options, const TranslatorCompute& compute) {
                                      std::unique_ptr<LineTranslator> translator = std::make_unique<Translator>(
                                          folders, vocab, options_fields().read(options, "etc translate", "--"),
                                          compute);
                                      return translator;
                                    }};
  return kKind;
}

}  // namespace etc::translation
