#include "tasks/pretrain/prepare.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "data/readers/json_record.h"
#include "data/readers/line_blocks.h"
#include "etc_core/base/error.h"
#include "tasks/pretrain/corpus_run.h"
#include "tasks/pretrain/number_file.h"
#include "tasks/pretrain/schema.h"
#include "tasks/text/tokenized_preparation.h"

namespace etc::pretrain {

namespace {

std::unique_ptr<data::RecordReader> open_text(data::ByteStream& stream, const PrepareConfig& config) {
  if (!config.text_key.empty()) return std::make_unique<data::RecordSlicer>(stream, data::RecordLayout::lines);
  const bool wrapped = config.lines == Lines::wrapped;
  return std::make_unique<data::LineBlockReader>(stream,
                                                 wrapped ? data::BlockEnd::empty_line : data::BlockEnd::any_line);
}

// The text of a JSON line; nullopt, with a fault, if it has none.
std::optional<std::string> json_text_of(data::RecordSlice& record, const std::string& key, prepare::FaultList& faults) {
  try {
    const data::JsonRecord parsed = data::parse_record(record, data::UnreadMembers({}, {key}));
    if (!parsed.value.is_object()) {
      faults.reject("", "record_not_object", fmt::format("expected an object, got {}", parsed.value.type_name()));
      return std::nullopt;
    }
    const auto text = parsed.value.find(key);
    if (text == parsed.value.end()) {
      faults.reject(key, "missing_field", "expected a string, the record has no such member (see --text-key)");
    } else if (!text->is_string()) {
      faults.reject(key, "wrong_type", fmt::format("expected a string, got {}", text->type_name()));
    } else {
      return text->get<std::string>();
    }
  } catch (const data::InputFault& fault) {
    if (!record.cut_short.empty()) throw;
    faults.reject("", fault.code(), fault.what());
  }
  return std::nullopt;
}

// For objectives with whole sentences, a sentence must fit in an instance; those of a pair are cut when the pair is made.
std::int64_t longest_sentence(const PrepareConfig& config) {
  if (config.objective == Objective::mlm_nsp) return 0;
  const std::int64_t special_pieces = config.objective == Objective::mlm_cpc ? 1 : 2;  // [CLS]; [CLS] and [SEP]
  return std::min(config.max_sentence_tokens, *config.max_seq_length - special_pieces);
}

std::unique_ptr<data::SentenceSplitter> splitter_of(const PrepareConfig& config) {
  return config.lines == Lines::sentences ? nullptr : data::load_splitter(config.splitter);
}

// See PreparationKind::make. A text has its own labels, so the setting for labels is not used.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels /*labels*/) {
  const PrepareConfig config = read_prepare_config(settings);
  std::shared_ptr<const data::Tokenizer> tokenizer =
      text::load_tokenizer(vocab, config.tokenizer, {.do_lower_case = config.do_lower_case});
  return std::make_unique<PretrainPreparation>(config, std::move(tokenizer), splitter_of(config));
}

// Lines or paragraphs of a raw file; PreparationKind::texts.
void texts_to_split(const std::filesystem::path& input, const Json& settings,
                    const std::function<void(std::string_view)>& visit) {
  const PrepareConfig config = read_prepare_config(settings);
  data::ByteStream stream(input);
  const auto reader = open_text(stream, config);
  prepare::FaultList ignored;  // the preparation reports these faults
  for (data::RecordSlice slice; reader->next(slice);) {
    if (!config.text_key.empty()) {
      const auto text = json_text_of(slice, config.text_key, ignored);
      if (!text) continue;
      slice.text = *text;
    }
    for_each_part(slice.text, config.lines, visit, [] {});
  }
}

}  // namespace

PretrainPreparation::PretrainPreparation(const PrepareConfig& config, std::shared_ptr<const data::Tokenizer> tokenizer,
                                         std::unique_ptr<data::SentenceSplitter> splitter)
    : config_(config),
      tokenizer_(std::move(tokenizer)),
      cutter_(tokenizer_, std::move(splitter), config.lines, longest_sentence(config)),
      maker_(config, *tokenizer_) {}

const data::Schema& PretrainPreparation::schema() const {
  return pretrain::schema();
}

Json PretrainPreparation::preprocess_config() const {
  Json stored = prepare_settings().to_json(config_);
  stored.update({{"tokenizer", tokenizer_->kind()}, {"do_lower_case", tokenizer_->lower_case()}});
  if (const data::SentenceSplitter* splitter = cutter_.splitter()) {
    stored["splitter"] = {{"name", splitter->name()}, {"tables_sha256", splitter->tables_sha256()}};
  } else {
    stored["splitter"] = nullptr;
  }
  return stored;
}

std::unique_ptr<data::RecordReader> PretrainPreparation::open_records(data::ByteStream& stream) const {
  return open_text(stream, config_);
}

std::int64_t PretrainPreparation::kept_bytes(const prepare::InputSize& inputs) const {
  return std::min(kHeldBytes, inputs.bytes);
}

prepare::Counts PretrainPreparation::run(const prepare::RunOptions& options) const {
  return run_corpus(*this, options);
}

CutText PretrainPreparation::cut(data::RecordSlice& record, prepare::FaultList& faults) const {
  if (config_.text_key.empty()) return cutter_.cut(record.text, config_.document_ends == DocumentEnds::empty_lines);
  const auto text = json_text_of(record, config_.text_key, faults);
  CutText cut = text ? cutter_.cut(*text, false) : CutText{};
  cut.text.document_begins = {0};
  return cut;
}

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{prepare_settings(), make_preparation, texts_to_split};
  return kKind;
}

}  // namespace etc::pretrain
