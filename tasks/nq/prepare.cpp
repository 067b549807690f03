#include "tasks/nq/prepare.h"

#include "etc_core/base/error.h"
#include "tasks/nq/schema.h"
#include "tasks/nq/windows.h"

namespace etc::nq {

namespace {

// Faults that only show after tokenisation.
void check_document(const Record& record, const Document& document, const PrepareConfig& config,
                    prepare::FaultList& faults) {
  const std::int64_t question = std::ssize(document.question_ids);
  if (question == 0) {
    faults.warn("question_text", "question_empty",
                record.question.empty() ? "the question is empty" : "the question has no token");
  } else if (question > config.question_len) {
    faults.warn_quietly("question_text", "question_truncated",
                        fmt::format("{} of {} word pieces are kept", config.question_len, question));
  }
  if (document.too_long) {
    faults.reject("long_answer_candidates", "document_too_long",
                  fmt::format("the text of the top-level candidates has more than {} word pieces", kMostPieces));
  }
}

void check_windows(const Windows& windows, prepare::FaultList& faults) {
  if (windows.global_full) {
    faults.warn_quietly("long_answer_candidates", "global_overflow",
                        "more candidates than global tokens; the last ones share one");
  }
  if (windows.label_missing) {
    faults.warn_quietly("annotations[0]", "label_unmapped",
                        "the answer's first or last token has no word piece in a top-level candidate");
  }
}

}  // namespace

const data::Schema& NqPreparation::schema() const {
  return nq::schema(config_.fixed_blocks);
}

// Those that are left out are most of a record's bytes.
const data::UnreadMembers& NqPreparation::unread_members() const {
  static const data::UnreadMembers kUnread({{"document_html", ""},
                                            {"question_tokens", ""},
                                            {"document_tokens", "start_byte"},
                                            {"document_tokens", "end_byte"}},
                                           {kRecordMembers.begin(), kRecordMembers.end()});
  return kUnread;
}

const data::FlatLists& NqPreparation::flat_lists() const {
  static const data::FlatLists kLists = {{"document_tokens", kTokenMembers}};
  return kLists;
}

Json NqPreparation::preprocess_config() const {
  Json config = stored_settings(prepare_settings());
  config.update({{"include_unknown_rate_for_unanswerable", config_.unanswerable_rate()},
                 {"special_ids", json_of(config_.special_ids)}});
  return config;
}

prepare::Converted NqPreparation::convert(const data::JsonRecord& raw) const {
  prepare::Converted result;
  prepare::FaultList& faults = result.faults;
  const Record record = read_record(raw, config_, faults);
  result.id = record.id;
  if (faults.rejected()) return result;
  const Document document = tokenize(record, *tokenizer_, config_);
  check_document(record, document, config_, faults);
  if (faults.rejected()) return result;
  Windows windows = cut_windows(record, document, label_of(record, config_), config_);
  check_windows(windows, faults);
  result.examples = std::move(windows.examples);
  for (data::Example& example : result.examples) example["record_index"] = raw.index;
  result.gold = gold_row(record);
  return result;
}

std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels) {
  PrepareConfig config = read_prepare_config(settings, labels);
  auto tokenizer =
      text::load_tokenizer(vocab, config.tokenizer, {.do_lower_case = config.do_lower_case, .whole_user_pieces = true});
  resolve_special_ids(config, *tokenizer);
  return std::make_unique<NqPreparation>(config, std::move(tokenizer));
}

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{prepare_settings(), make_preparation};
  return kKind;
}

}  // namespace etc::nq
