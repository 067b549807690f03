#include "tasks/translation/translator.h"

#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/train/model.h"
#include "tasks/train/run_config.h"
#include "tasks/translation/decode/translate.h"
#include "tasks/translation/line_sources.h"
#include "tasks/translation/search_memory.h"
#include "tasks/translation/vocabulary.h"

namespace etc::translation {

namespace fs = std::filesystem;

namespace {

Seq2SeqConfig config_of(const fs::path& folder) {
  const ModelConfig config = read_encoder_config(folder);
  if (const auto* const own = dynamic_cast<const Seq2SeqConfig*>(&*config)) return *own;
  const std::string kind = model_kind_of(config->to_json()), task = named_task(read_model_config(folder));
  fail_usage(folder.string(), "expected a model of translation, an encoder-decoder, got {} of kind {}",
             task.empty() ? "an encoder" : "one of " + task, kind);
}

// The vocabulary's identity, which must be the same for all models.
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

// The contents of the models' folders without the weights.
struct Folders {
  explicit Folders(const TranslatorRequest& request);

  std::vector<Seq2SeqConfig> configs;
  std::shared_ptr<const data::Tokenizer> tokenizer;
  TranslatorOptions options;
};

Folders::Folders(const TranslatorRequest& request) : options(read_translator_options(*request.options)) {
  if (request.folders.empty()) fail_usage("translate", "expected at least one model");
  // Checked first, since models of other tasks have other vocabularies.
  for (const fs::path& folder : request.folders) configs.push_back(config_of(folder));
  const DataIdentity data = identity_of(request.folders);
  const fs::path file = vocabulary_of(request.folders, data, request.vocab);
  tokenizer = Vocabulary(file, data).tokenizer;
  options.tokens = search_tokens(*tokenizer);
  options.before_step = request.before_step;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const std::int64_t rows = other_table_rows(configs[i], *tokenizer);
    if (rows == 0) continue;
    fail(request.folders[i].string(), "expected tables of {} rows, as many as {} has pieces, got {}",
         tokenizer->vocab_size(), file.string(), rows);
  }
}

class Translator final : public LineTranslator {
 public:
  explicit Translator(const TranslatorRequest& request) : Translator(request, Folders(request)) {}

  void translate(std::span<const SourceLine> lines, std::int64_t first_line, const TranslationSink& sink) override;
  std::int64_t most() const override { return options_.beam; }
  std::int64_t pieces() const override { return sources_.pieces(); }
  std::int64_t unknown_pieces() const override { return sources_.unknown_pieces(); }

 private:
  Translator(const TranslatorRequest& request, const Folders& folders);
  SearchPlan plan(std::span<const TranslationSource> sources, std::span<const SourceLine> lines,
                  std::int64_t first_line);

  const TranslatorOptions options_;
  const bool limited_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  LineSources sources_;
  SearchMemory memory_;
  bool memory_told_ = false;
  std::vector<std::unique_ptr<TranslatorModel>> models_;
};

Translator::Translator(const TranslatorRequest& request, const Folders& folders)
    : options_(folders.options),
      limited_(request.memory_limit > 0),
      tokenizer_(folders.tokenizer),
      sources_(folders.tokenizer, folders.options),
      memory_(folders.configs, options_, request.compute, request.memory_limit) {
  for (std::size_t i = 0; i < folders.configs.size(); ++i) {
    TranslatorModel& model = *models_.emplace_back(std::make_unique<TranslatorModel>(folders.configs[i]));
    map_parameters(request.folders[i] / "model.safetensors", model.parameters);
    model.parameters.to(request.compute.device);
    model.release_kernels(request.compute.type);
  }
}

SearchPlan Translator::plan(std::span<const TranslationSource> sources, std::span<const SourceLine> lines,
                            std::int64_t first_line) {
  SearchPlan plan{options_.batch_tokens, {sources.size()}};
  if (limited_) plan = memory_.plan(sources, lines, first_line);
  if (!std::exchange(memory_told_, true)) {
    log::info("expected peak memory for the first {} lines, with translations as long as they may be: {}", lines.size(),
              memory_text(memory_.estimate(sources, lines, plan)));
  }
  return plan;
}

void Translator::translate(std::span<const SourceLine> lines, std::int64_t first_line, const TranslationSink& sink) {
  const std::vector<TranslationSource> sources = sources_.read(lines, first_line);
  const SearchPlan plan = this->plan(sources, lines, first_line);
  std::int64_t searched = 0, all = 0;  // pieces
  for (const TranslationSource& source : sources) all += std::ssize(source.ids);
  const auto add_searched = [&](std::int64_t pieces) {
    searched += pieces;
    if (sink.searched) sink.searched(static_cast<double>(searched) / static_cast<double>(all));
  };
  std::vector<TranslationModel> models;
  for (const auto& model : models_) models.push_back({model->encoder, model->decoder});
  std::size_t first = 0;
  for (const std::size_t end : plan.ends) {
    const auto part = std::span(sources).subspan(first, end - first);
    for (const auto& found : translation::translate(models, part, {options_, plan.batch_tokens, add_searched})) {
      std::vector<LineTranslation> of_line;
      for (const Hypothesis& hypothesis : found) {
        of_line.push_back({sentence_of(*tokenizer_, hypothesis.tokens), hypothesis.score});
      }
      sink.take(of_line);
    }
    first = end;
  }
}

std::unique_ptr<LineTranslator> open_translator(const TranslatorRequest& request) {
  return std::make_unique<Translator>(request);
}

ProcessMemory forecast_translation(const TranslatorRequest& request, const NextLines& next) {
  const Folders folders(request);
  LineSources sources(folders.tokenizer, folders.options);
  SearchMemory memory(folders.configs, folders.options, request.compute, 0);
  std::int64_t read = 0;
  while (true) {
    const std::vector<SourceLine> lines = next();
    const ProcessMemory& peak = memory.peak(sources.read(lines, read + 1), lines);
    if (lines.empty()) return peak;
    read += std::ssize(lines);
  }
}

}  // namespace

const TranslatorKind& translator_kind() {
  static const TranslatorKind kKind{translator_options(), open_translator, forecast_translation};
  return kKind;
}

}  // namespace etc::translation
