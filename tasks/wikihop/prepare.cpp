#include "tasks/wikihop/prepare.h"

#include <algorithm>
#include <string_view>

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/text/raw_records.h"
#include "tasks/wikihop/features.h"
#include "tasks/wikihop/record.h"
#include "tasks/wikihop/schema.h"

namespace etc::wikihop {

namespace {

constexpr const char* kWhere = "etc prepare";
constexpr std::string_view kWordPiece = "wordpiece";

// Faults that only show after tokenisation.
void check_tokens(const Record& record, const TokenizedRecord& tokens, prepare::FaultList& faults) {
  for (std::size_t c = 0; c < record.candidates.size(); ++c) {
    if (record.candidates[c].empty() || !tokens.candidates[c].ids.empty()) continue;
    faults.reject(fmt::format("candidates[{}]", c), "candidate_empty", "candidate has no token in this vocabulary");
  }
  // If the record has no query, this was already reported as a missing field.
  const auto about_query = [](const data::Fault& row) {
    return row.field == "query" && row.severity == data::Severity::reject;
  };
  if (tokens.query.ids.empty() && std::none_of(faults.rows().begin(), faults.rows().end(), about_query)) {
    faults.reject("query", "query_empty", record.query.empty() ? "the query is empty" : "the query has no token");
  }
}

void check_lengths(const TokenizedRecord& tokens, const Truncation& truncation, const PrepareConfig& config,
                   prepare::FaultList& faults) {
  const auto candidates = static_cast<std::int64_t>(tokens.candidates.size());
  const auto documents = static_cast<std::int64_t>(tokens.sentence_tokens.size());
  const std::int64_t length = candidates + tokens.query_tokens() + documents + truncation.sentences_after;
  if (length > config.global_seq_len) {
    faults.reject(
        "supports", "global_overflow",
        fmt::format("{} global tokens exceed global_seq_len={}: {} candidates + {} query tokens + {} documents "
                    "+ {} sentences",
                    length, config.global_seq_len, candidates, tokens.query_tokens(), documents,
                    truncation.sentences_after));
  }
  if (truncation.removal_order.empty()) return;
  faults.warn_quietly("supports", "truncated",
                      fmt::format("{} of {} sentences and {} of {} document tokens kept", truncation.sentences_after,
                                  truncation.sentences_before, truncation.tokens_after, truncation.tokens_before));
}

std::uint32_t flags_of(const Record& record, const TokenizedRecord& tokens, const Truncation& truncation,
                       const Features& features, const prepare::FaultList& faults) {
  std::uint32_t flags = 0;
  if (truncation.too_many_tokens) flags |= kLongCut;
  if (truncation.too_many_sentences) flags |= kGlobalCut;
  if (!record.answer) flags |= kLabelMissing;
  if (faults.warned()) flags |= kWarned;
  if (record.unusable_label) flags |= kLabelUnusable;
  if (record.equal_candidates) flags |= kEqualCandidates;
  for (std::size_t d = 0; d < truncation.kept.size(); ++d) {
    if (truncation.kept[d] == 0 && !tokens.sentence_tokens[d].empty()) flags |= kEmptiedDocument;
  }
  if (record.label >= 0 && !features.mentioned[static_cast<std::size_t>(record.label)]) flags |= kAnswerNotMentioned;
  return flags;
}

}  // namespace

WikihopPreparation::WikihopPreparation(const PrepareConfig& config, std::unique_ptr<data::Tokenizer> tokenizer,
                                       std::unique_ptr<data::SentenceSplitter> splitter)
    : TokenizedPreparation(config, std::move(tokenizer)), splitter_(std::move(splitter)) {
  if (tokenizer_->kind() == kWordPiece && !tokenizer_->lower_case()) {
    fail_usage(kWhere,
               "do_lower_case: WikiHop needs lower-casing with a WordPiece vocabulary, because candidates are "
               "lower case (leave do_lower_case at true)");
  }
}

const data::Schema& WikihopPreparation::schema() const {
  return wikihop::schema();
}

const data::UnreadMembers& WikihopPreparation::unread_members() const {
  static const data::UnreadMembers kUnread({}, {kRecordMembers.begin(), kRecordMembers.end()});
  return kUnread;
}

Json WikihopPreparation::preprocess_config() const {
  Json config = stored_settings(prepare_settings());
  config.update({{"splitter", {{"name", splitter_->name()}, {"tables_sha256", splitter_->tables_sha256()}}},
                 {"special_ids", json_of(config_.special_ids)}});
  return config;
}

prepare::Converted WikihopPreparation::convert(const data::JsonRecord& raw) const {
  prepare::Converted result;
  prepare::FaultList& faults = result.faults;
  const Record record = read_record(raw, config_, faults);
  result.id = record.id;
  const TokenizedRecord tokens = tokenize(record, *tokenizer_, *splitter_, config_);
  check_tokens(record, tokens, faults);
  if (tokens.query_tokens() + tokens.candidate_tokens() > config_.long_seq_len) {
    faults.reject("candidates", "prefix_too_long",
                  fmt::format("{} query tokens and {} candidate tokens exceed long_seq_len={}", tokens.query_tokens(),
                              tokens.candidate_tokens(), config_.long_seq_len));
  }
  if (faults.rejected()) return result;
  const Truncation truncation = truncate(tokens, config_);
  check_lengths(tokens, truncation, config_, faults);
  if (faults.rejected()) return result;

  Features f = lay_out(record, tokens, truncation.kept, config_, tokenizer_->kind() != kWordPiece);
  data::Example& example = result.examples.emplace_back();
  example["id"] = record.id;
  example["record_index"] = raw.index;
  example["flags"] = std::int64_t{flags_of(record, tokens, truncation, f, faults)};
  example["long_token_ids"] = std::move(f.long_token_ids);
  example["long_token_type_ids"] = std::move(f.long_token_type_ids);
  example["long_sentence_ids"] = std::move(f.long_sentence_ids);
  example["long_paragraph_ids"] = std::move(f.long_paragraph_ids);
  example["long_paragraph_breakpoints"] = std::move(f.long_paragraph_breakpoints);
  example["l2g_linked_ids"] = std::move(f.l2g_linked_ids);
  example["global_token_ids"] = std::move(f.global_token_ids);
  example["global_token_type_ids"] = std::move(f.global_token_type_ids);
  example["global_paragraph_breakpoints"] = std::move(f.global_paragraph_breakpoints);
  example["label_id"] = record.label;
  example["num_candidates"] = static_cast<std::int64_t>(tokens.candidates.size());
  example["num_query_tokens"] = tokens.query_tokens();
  example["num_documents"] = static_cast<std::int64_t>(tokens.sentence_tokens.size());
  example["query"] = record.query;
  example["answer"] = record.answer.value_or("");
  example["candidates"] = record.candidates;
  example["sentences_before"] = truncation.sentences_before;
  example["sentences_after"] = truncation.sentences_after;
  example["doc_tokens_before"] = truncation.tokens_before;
  example["doc_tokens_after"] = truncation.tokens_after;
  return result;
}

namespace {

// The setting is a word, or an object as stored in a data set's configuration. From an object only icu can be loaded: the
// configuration does not hold the tables of the others.
std::unique_ptr<data::SentenceSplitter> make_splitter(const Json& setting) {
  if (setting.is_string()) return data::load_splitter(setting.get<std::string>());
  const auto found = setting.find("name");
  if (!setting.is_object() || found == setting.end() || !found->is_string()) {
    fail_usage(kWhere, "splitter: expected a word or an object with a name, got {}", json_line(setting));
  }
  const auto name = found->get<std::string>();
  if (name != "icu") {
    // Reached by callers that read raw texts with the stored settings of a data set, so the message names no command.
    fail_usage("splitter", "the tables of {} are not part of the configuration (give --splitter {}:DIR)", name, name);
  }
  return data::load_splitter(name);
}

// The published preparation splits with Punkt (task-wikihop 2.3), and other sentences are other features. Only a splitter
// that was chosen here is warned of, not one that a data set or model was made with.
void warn_of_other_sentences(const PrepareConfig& config, const data::SentenceSplitter& splitter) {
  if (config.parity != Parity::reference || !config.splitter.is_string() || splitter.name() != "icu") return;
  log::warn(
      "prepare: parity reference: the published preparation splits sentences with Punkt, and icu splits other ones: "
      "the features will differ from the published ones (give --splitter punkt:DIR)");
}

// Loads vocabulary and splitter as the settings say; see PreparationKind::make.
std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels) {
  PrepareConfig config = read_prepare_config(settings, labels);
  auto splitter = make_splitter(config.splitter);
  warn_of_other_sentences(config, *splitter);
  auto tokenizer = text::load_tokenizer(vocab, config.tokenizer, {.do_lower_case = config.do_lower_case});
  resolve_special_ids(config, *tokenizer);
  return std::make_unique<WikihopPreparation>(config, std::move(tokenizer), std::move(splitter));
}

// The documents of a raw file; PreparationKind::texts.
void texts_to_split(const std::filesystem::path& input, const Json& /*settings*/,
                    const std::function<void(std::string_view)>& visit) {
  text::for_each_record(input, data::RecordLayout::array, [&](const text::JsonField& record) {
    if (!record.json().is_object()) return;  // preparing will report it
    const auto supports = record.json().find("supports");
    if (supports == record.json().end() || !supports->is_array()) return;
    for (const Json& document : *supports) {
      if (document.is_string()) visit(document.get_ref<const std::string&>());
    }
  });
}

}  // namespace

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{prepare_settings(), make_preparation, texts_to_split};
  return kKind;
}

}  // namespace etc::wikihop
