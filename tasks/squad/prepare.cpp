#include "tasks/squad/prepare.h"

#include "etc_core/base/error.h"
#include "tasks/squad/record.h"
#include "tasks/squad/schema.h"
#include "tasks/squad/windows.h"
#include "tasks/text/special_pieces.h"

namespace etc::squad {

namespace {

data::Example gold_row(const Record& record) {
  std::vector<std::string> answers;
  for (const Answer& answer : record.answers) answers.push_back(answer.text);
  data::Example row;
  row["id"] = record.id;
  row["question"] = record.question;
  row["answers"] = std::move(answers);
  row["is_impossible"] = std::int64_t{record.impossible};
  return row;
}

}  // namespace

const data::Schema& SquadPreparation::schema() const {
  return squad::schema();
}

const data::UnreadMembers& SquadPreparation::unread_members() const {
  static const data::UnreadMembers kUnread(
      {}, {"context", "question.id", "question.question", "question.answers", "question.is_impossible"});
  return kUnread;
}

Json SquadPreparation::preprocess_config() const {
  return stored_settings(prepare_settings());
}

prepare::Converted SquadPreparation::convert(const data::JsonRecord& raw) const {
  prepare::Converted result;
  prepare::FaultList& faults = result.faults;
  const Record record = read_record(raw, config_, faults);
  result.id = record.id;
  if (faults.rejected()) return result;
  const text::OffsetText context(record.context, *tokenizer_);
  Target target;
  if (config_.trains() && !find_target(record, context, *tokenizer_, config_, faults, target)) return result;
  if (context.ids().empty()) faults.warn("context", "context_empty", "the context has no token, so there is no window");
  result.examples =
      window_examples(record, context, *tokenizer_, config_, config_.trains() ? &target : nullptr, faults);
  for (data::Example& example : result.examples) example["record_index"] = raw.index;
  result.gold = gold_row(record);
  return result;
}

std::unique_ptr<prepare::Preparation> make_preparation(const Json& settings, const std::filesystem::path& vocab,
                                                       prepare::Labels labels) {
  const PrepareConfig config = read_prepare_config(settings, labels);
  auto tokenizer = text::load_tokenizer(vocab, config.tokenizer, {.do_lower_case = config.do_lower_case});
  if (tokenizer->kind() != std::string_view("wordpiece") && !text::is_byte_bpe(*tokenizer)) {
    fail_usage(
        "etc prepare",
        "--vocab {}: task squad needs a WordPiece or byte-level vocabulary (a vocab.txt or vocab.json), got a {} "
        "model, whose pieces are no parts of the words that answers are made of",
        vocab.string(), tokenizer->kind());
  }
  require_room_for_text(config, text::pair_form(*tokenizer).separators);
  // A missing special piece is an Error here instead of for every record.
  for (const auto& special : {text::kClsPiece, text::kSepPiece}) text::special_id(*tokenizer, special);
  return std::make_unique<SquadPreparation>(config, std::move(tokenizer));
}

const prepare::PreparationKind& preparation_kind() {
  static const prepare::PreparationKind kKind{prepare_settings(), make_preparation};
  return kKind;
}

}  // namespace etc::squad
