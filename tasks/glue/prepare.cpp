#include "tasks/glue/prepare.h"

#include "etc_core/base/error.h"
#include "tasks/glue/schema.h"
#include "tasks/text/special_pieces.h"
#include "tasks/text/tokenized_preparation.h"

namespace etc::glue {

namespace {

std::int64_t cls_id(const data::Tokenizer& tokenizer) {
  return text::special_id(tokenizer, text::kClsPiece);
}
std::int64_t sep_id(const data::Tokenizer& tokenizer) {
  return text::special_id(tokenizer, text::kSepPiece);
}

// A pair's separators are never truncated, so every row needs room for them.
void require_room_for_pair(const PrepareConfig& config, const data::Tokenizer& tokenizer) {
  const DataSetInfo& info = info_of(config.data_set);
  const std::int64_t least = 2 + text::pair_form(tokenizer).separators;
  if (info.text_b[0] == '\0' || config.seq_len >= least) return;
  fail_usage("etc prepare",
             "seq_len: expected at least {} for {}, whose rows are pairs (with this vocabulary CLS and {} separators), "
             "got {}",
             least, info.name, least - 1, config.seq_len);
}

}  // namespace

const FieldList<PrepareConfig>& prepare_settings() {
  using Config = PrepareConfig;
  constexpr double kLargest = std::numeric_limits<std::int32_t>::max();
  static const FieldList<Config> kSettings{
      data_set_entry(&Config::data_set, "cola, sst-2, mrpc, sts-b, qqp, mnli, qnli, rte, wnli or ax"),
      {"layout",
       &Config::layout,
       "tsv: the benchmark's files; csv: sts-b as rows of two texts and a score, without a header",
       {{"tsv", Layout::tsv}, {"csv", Layout::csv}}},
      {"seq_len", &Config::seq_len, "long tokens of an example at most (L)", {.least = 3, .most = kLargest}},
      text::tokenizer_entry<Config>(),
      text::lower_case_entry<Config>(),
  };
  return kSettings;
}

Sequence sequence_of(const Row& row, const data::Tokenizer& tokenizer, std::int64_t most) {
  std::vector<std::int32_t> a = tokenizer.encode_ids(row.text_a), b = tokenizer.encode_ids(row.text_b);
  const text::PairForm pair = text::pair_form(tokenizer);
  Sequence sequence;
  sequence.pieces = std::ssize(a) + std::ssize(b);
  if (b.empty()) {
    a.resize(std::min(a.size(), static_cast<std::size_t>(most - 2)));
  } else {
    while (std::ssize(a) + std::ssize(b) > most - 2 - pair.separators) (a.size() > b.size() ? a : b).pop_back();
  }
  sequence.kept = std::ssize(a) + std::ssize(b);
  const std::int64_t sep = sep_id(tokenizer);
  sequence.ids.push_back(cls_id(tokenizer));
  sequence.ids.insert(sequence.ids.end(), a.begin(), a.end());
  sequence.ids.push_back(sep);
  sequence.segments.resize(sequence.ids.size(), 0);
  if (b.empty()) return sequence;
  for (std::int64_t i = 1; i < pair.separators; ++i) sequence.ids.push_back(sep);
  sequence.segments.resize(sequence.ids.size(), 0);
  sequence.ids.insert(sequence.ids.end(), b.begin(), b.end());
  sequence.ids.push_back(sep);
  sequence.segments.resize(sequence.ids.size(), pair.second_segment);
  return sequence;
}

const data::Schema& GluePreparation::schema() const {
  return glue::schema();
}

Json GluePreparation::preprocess_config() const {
  Json stored = prepare_settings().to_json(config_);
  stored.update({{"tokenizer", tokenizer_->kind()}, {"do_lower_case", tokenizer_->lower_case()}});
  return stored;
}

std::unique_ptr<data::RecordReader> GluePreparation::open_records(data::ByteStream& stream) const {
  return open_rows(stream, config_.row_form());
}

// Row ids are not unique over several files, so Converted has no id.
prepare::Converted GluePreparation::convert_record(data::RecordSlice& record) const {
  prepare::Converted result;
  const Row row = read_row(record, config_.row_form(), result.faults);
  if (result.faults.rejected() || result.faults.dropped()) return result;
  Sequence sequence = sequence_of(row, *tokenizer_, config_.seq_len);
  if (sequence.kept < sequence.pieces) {
    result.faults.warn_quietly(
        "row", "truncated",
        fmt::format("line {}: {} pieces, {} are kept", record.begin.line, sequence.pieces, sequence.kept));
  }
  data::Example& example = result.examples.emplace_back();
  example["id"] = row.id;
  example["record_index"] = record.index;
  example["data_set"] = static_cast<std::int64_t>(config_.data_set);
  example["token_ids"] = std::move(sequence.ids);
  example["segment_ids"] = std::move(sequence.segments);
  example["label"] = row.label;
  example["scored"] = std::int64_t{row.score.has_value()};
  example["score"] = static_cast<float>(row.score.value_or(0));
  return result;
}

std::string GluePreparation::text_of_json(std::string json, const std::string& what) const {
  return row_text_of(parse_json(json, what), config_.row_form(), what);
}

std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels) {
  const auto config = text::read_settings(prepare_settings(), settings, labels);
  if (config.layout == Layout::csv && config.data_set != DataSet::stsb) {
    fail_usage("etc prepare", "layout: csv is the raw release of sts-b, got data_set {}",
               info_of(config.data_set).name);
  }
  auto tokenizer =
      text::load_tokenizer(vocab, config.tokenizer, {.do_lower_case = config.do_lower_case, .whole_user_pieces = true});
  require_room_for_pair(config, *tokenizer);
  for (const auto id : {cls_id, sep_id}) id(*tokenizer);  // an Error here instead of at the first row
  return std::make_unique<GluePreparation>(config, std::move(tokenizer));
}

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{prepare_settings(), make_preparation};
  return kKind;
}

}  // namespace etc::glue
