#include "tasks/hotpotqa/prepare.h"

#include <algorithm>
#include <utility>

#include "etc_core/base/error.h"
#include "tasks/hotpotqa/features.h"
#include "tasks/hotpotqa/record.h"
#include "tasks/hotpotqa/schema.h"

namespace etc::hotpotqa {

namespace {

// Code and message of a label that cannot be trained on.
std::pair<const char*, std::string> words_of(const Label& label, const Record& record) {
  const std::string answer = prepare::quoted(record.answer.value_or(""));
  switch (label.fault) {
    case Label::Fault::no_sf_label:
      return {"no_sf_label", "no title or sentence of the sequence is a supporting fact"};
    case Label::Fault::answer_empty:
      return {"answer_empty", "the answer is empty or white space"};
    case Label::Fault::answer_not_found:
      return {"answer_not_found", answer + " is not in the titles and sentences of the supporting facts"};
    case Label::Fault::answer_beyond_limit:
      return {"answer_beyond_limit", answer + " lies beyond long_seq_len"};
    case Label::Fault::answer_in_cut_text:
      return {"answer_in_cut_text", answer + " stands only in text that was skipped for length"};
    case Label::Fault::answer_without_tokens:
      return {"answer_span_inverted", answer + " has no token where it occurs"};
    case Label::Fault::answer_reversed:
      return {"answer_span_inverted",
              fmt::format("the answer's span ends at {} before it begins at {}", label.span.last, label.span.first)};
    case Label::Fault::none:
      break;
  }
  return {"", ""};
}

// Faults that only show after tokenisation.
void check_sequences(const Record& record, const Features& features, prepare::FaultList& faults) {
  if (features.question_tokens == 0) {
    faults.warn("question", "question_empty",
                record.question.empty() ? "the question is empty" : "the question has no token");
  }
  if (features.skipped_for_long + features.skipped_for_global > 0) {
    faults.warn_quietly("context", "text_skipped",
                        fmt::format("question pieces, titles and sentences skipped: {} for the long limit, {} for the "
                                    "global limit",
                                    features.skipped_for_long, features.skipped_for_global));
  }
}

void check_label(const Label& label, const Record& record, const Features& features, const PrepareConfig& config,
                 prepare::FaultList& faults) {
  if (label.fault != Label::Fault::none) {
    const auto [code, message] = words_of(label, record);
    const char* field = label.fault == Label::Fault::no_sf_label ? "supporting_facts" : "answer";
    if (!config.is_training) {
      faults.warn(field, code, message);
    } else if (label.fault == Label::Fault::answer_reversed) {
      faults.reject(field, code, message);
    } else {
      faults.drop(field, code, message);
    }
    return;
  }
  if (label.inverted_spans > 0) {
    faults.warn("answer", "answer_span_inverted",
                fmt::format("{} of the answer's {} occurrences have no token and are left out", label.inverted_spans,
                            features.answer_spans.size()));
  }
  if (label.source && label.source->skipped) {
    faults.warn("answer", "answer_in_cut_text", "the answer label lies in text that was skipped for length");
  }
  const auto& spans = features.answer_spans;
  if (std::any_of(spans.begin(), spans.end(), [](const AnswerSpan& s) { return s.inside_word; })) {
    faults.count("answer_inside_word");
  }
}

std::uint32_t flags_of(const Record& record, const Features& features, const Label& label, bool usable,
                       const prepare::FaultList& faults) {
  std::uint32_t flags = 0;
  if (features.skipped_for_long > 0) flags |= kLongCut;
  if (features.skipped_for_global > 0) flags |= kGlobalCut;
  if (!record.labelled()) flags |= kLabelMissing;
  if (faults.warned()) flags |= kWarned;
  if (record.labelled() && !usable) flags |= kLabelUnusable;
  if (features.facts_cut_away > 0) flags |= kFactCutAway;
  if (record.fact_out_of_range) flags |= kFactOutOfRange;
  if (record.fact_title_unknown) flags |= kFactTitleUnknown;
  if (label.source && label.source->skipped) flags |= kAnswerInCutText;
  if (label.source && label.type != AnswerType::span) flags |= kYesNoSubstringHit;
  return flags;
}

// Sets the features that hold labels; -1 where there is no label to train on.
void put_labels(const Features& features, const Label& label, bool usable, Parity parity, data::Example& example) {
  example["answer_types"] = usable ? static_cast<std::int64_t>(label.type) : kNone;
  example["answer_begins"] = usable ? label.span.first : kNone;
  example["answer_ends"] = usable ? label.span.last : kNone;
  std::vector<std::int64_t> begins, ends;
  for (const AnswerSpan& span : features.answer_spans) {
    if (span.tokens.last < span.tokens.first || (span.skipped && parity == Parity::repaired)) continue;
    begins.push_back(span.tokens.first);
    ends.push_back(span.tokens.last);
  }
  example["span_begins"] = std::move(begins);
  example["span_ends"] = std::move(ends);
}

void put_texts(const Record& record, data::Example& example) {
  std::vector<std::string> titles, fact_titles;
  std::vector<std::int64_t> fact_sentences;
  for (const Paragraph& paragraph : record.context) titles.push_back(paragraph.title);
  for (const SupportingFact& fact : record.supporting_facts.value_or(std::vector<SupportingFact>())) {
    fact_titles.push_back(fact.title);
    fact_sentences.push_back(fact.sentence);
  }
  example["question"] = record.question;
  example["answer"] = record.answer.value_or("");
  example["type"] = record.type;
  example["level"] = record.level;
  example["paragraph_titles"] = std::move(titles);
  example["gold_sf_titles"] = std::move(fact_titles);
  example["gold_sf_sentences"] = std::move(fact_sentences);
}

}  // namespace

const data::Schema& HotpotqaPreparation::schema() const {
  return hotpotqa::schema();
}

const data::UnreadMembers& HotpotqaPreparation::unread_members() const {
  static const data::UnreadMembers kUnread({}, {kRecordMembers.begin(), kRecordMembers.end()});
  return kUnread;
}

Json HotpotqaPreparation::preprocess_config() const {
  Json config = stored_settings(prepare_settings());
  config.update({{"special_ids", json_of(config_.special_ids)}});
  return config;
}

prepare::Converted HotpotqaPreparation::convert(const data::JsonRecord& raw) const {
  prepare::Converted result;
  prepare::FaultList& faults = result.faults;
  const Record record = read_record(raw, config_, faults);
  result.id = record.id;
  if (faults.rejected()) return result;
  Features f = lay_out(record, *tokenizer_, config_);
  check_sequences(record, f, faults);
  Label label;
  if (record.labelled()) {
    label = choose_label(record, f, config_);
    check_label(label, record, f, config_, faults);
  }
  if (faults.rejected() || faults.dropped()) return result;

  const bool usable = record.labelled() && label.fault == Label::Fault::none;
  data::Example& example = result.examples.emplace_back();
  example["id"] = record.id;
  example["record_index"] = raw.index;
  example["flags"] = std::int64_t{flags_of(record, f, label, usable, faults)};
  put_labels(f, label, usable, config_.parity, example);
  put_texts(record, example);
  example["long_token_ids"] = std::move(f.long_token_ids);
  example["long_token_type_ids"] = std::move(f.long_token_type_ids);
  example["long_sentence_ids"] = std::move(f.long_sentence_ids);
  example["long_paragraph_ids"] = std::move(f.long_paragraph_ids);
  example["long_paragraph_breakpoints"] = std::move(f.long_paragraph_breakpoints);
  example["long_tokens_to_unigrams"] = std::move(f.long_tokens_to_unigrams);
  example["global_token_ids"] = std::move(f.global_token_ids);
  example["global_token_type_ids"] = std::move(f.global_token_type_ids);
  example["global_paragraph_breakpoints"] = std::move(f.global_paragraph_breakpoints);
  example["global_paragraph_ids"] = std::move(f.global_paragraph_ids);
  example["global_sentence_ids"] = std::move(f.global_sentence_ids);
  example["global_true_sentence_ids"] = std::move(f.global_true_sentence_ids);
  example["supporting_facts"] = std::move(f.supporting_facts);
  example["global_text"] = std::move(f.global_text);
  return result;
}

namespace {

// Loads the vocabulary as the settings say; see PreparationKind::make.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels) {
  PrepareConfig config = read_prepare_config(settings, labels);
  auto tokenizer = text::load_tokenizer(vocab, config.tokenizer, {.do_lower_case = config.do_lower_case});
  resolve_special_ids(config, *tokenizer);
  return std::make_unique<HotpotqaPreparation>(config, std::move(tokenizer));
}

}  // namespace

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{prepare_settings(), make_preparation};
  return kKind;
}

}  // namespace etc::hotpotqa
