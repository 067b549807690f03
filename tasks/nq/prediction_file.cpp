#include "tasks/nq/prediction_file.h"

#include <charconv>
#include <set>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/text/raw_records.h"

namespace etc::nq {

namespace {

Span parse_span(const text::JsonField& json) {
  const auto bound = [&](const char* key) {
    const auto value = json.optional_member(key);
    return value ? value->integer() : -1;
  };
  const Span span{bound("start_token"), bound("end_token"), bound("start_byte"), bound("end_byte")};
  const auto check = [&](const char* unit, std::int64_t start, std::int64_t end) {
    if ((start < 0) != (end < 0)) json.fail(fmt::format("one {} bound is negative: {}, {}", unit, start, end));
    if (start >= 0 && start >= end)
      json.fail(fmt::format("expected start {0} < end {0}, got {1}, {2}", unit, start, end));
  };
  check("token", span.start_token, span.end_token);
  check("byte", span.start_byte, span.end_byte);
  return span;
}

std::vector<Span> parse_spans(const text::JsonField& list) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < list.size(); ++i) spans.push_back(parse_span(list.element(i)));
  return spans;
}

YesNo parse_yes_no(const text::JsonField& json) {
  const std::string value = data::lower_case(json.string());
  if (value == "yes") return YesNo::yes;
  if (value == "no") return YesNo::no;
  if (value != "none") json.fail_type("yes, no or none");
  return YesNo::none;
}

// The members that predictions and annotations share.
template <typename Answer>
void parse_answers(const text::JsonField& json, Answer& answer) {
  if (const auto span = json.optional_member("long_answer")) answer.long_answer = parse_span(*span);
  if (const auto spans = json.optional_member("short_answers")) answer.short_answers = parse_spans(*spans);
  if (const auto yes_no = json.optional_member("yes_no_answer")) answer.yes_no = parse_yes_no(*yes_no);
}

Prediction parse_prediction(const text::JsonField& unnamed) {
  Prediction prediction;
  prediction.example_id = unnamed.member("example_id").integer();
  const text::JsonField json = unnamed.named(fmt::format("{}: id {}", unnamed.where(), prediction.example_id));
  parse_answers(json, prediction);
  prediction.long_score = json.member("long_answer_score").number();
  prediction.short_score = json.member("short_answers_score").number();
  const bool spans = std::any_of(prediction.short_answers.begin(), prediction.short_answers.end(),
                                 [](const Span& s) { return !s.null(); });
  if (prediction.yes_no != YesNo::none && spans) {
    json.fail("expected either yes or no, or short answers, got both");
  }
  return prediction;
}

// Up to ten ids of `ids`, and how many more.
std::string listed(const std::vector<std::int64_t>& ids) {
  constexpr std::size_t kShown = 10;
  const std::size_t shown = std::min(ids.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (ids.size() > shown) text += fmt::format(" and {} more", ids.size() - shown);
  return text;
}

}  // namespace

PredictionMap parse_predictions(const text::JsonField& file) {
  PredictionMap predictions;
  const text::JsonField list = file.member("predictions");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Prediction prediction = parse_prediction(list.element(i));
    if (!predictions.insert_or_assign(prediction.example_id, prediction).second) {
      log::warn("{}: id {} occurs again; the last entry counts", list.element(i).where(), prediction.example_id);
    }
  }
  return predictions;
}

PredictionMap read_predictions(const std::filesystem::path& path) {
  const Json json = parse_json(read_file(path), path.string());
  return parse_predictions({json, path.string()});
}

std::int64_t example_id(const text::JsonField& record) {
  const text::JsonField id = record.member("example_id");
  if (!id.json().is_string()) return id.integer();
  const std::string& digits = id.string();
  std::int64_t value = 0;
  const auto end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end) id.fail_type("an integer of at most 64 bits");
  return value;
}

GoldDocument parse_gold(const text::JsonField& record) {
  GoldDocument gold;
  gold.example_id = example_id(record);
  const auto annotations =
      record.named(fmt::format("{}: id {}", record.where(), gold.example_id)).optional_member("annotations");
  if (!annotations) return gold;
  for (std::size_t i = 0; i < annotations->size(); ++i)
    parse_answers(annotations->element(i), gold.annotations.emplace_back());
  return gold;
}

Gold read_gold(const std::vector<std::filesystem::path>& paths) {
  std::vector<GoldDocument> documents;
  std::map<std::int64_t, std::size_t> places;  // of the ids in `documents`
  for (const auto& path : paths) {
    text::for_each_record(path, data::RecordLayout::lines, [&](const text::JsonField& record) {
      GoldDocument document = parse_gold(record);
      const auto [place, fresh] = places.try_emplace(document.example_id, documents.size());
      if (fresh) {
        documents.push_back(std::move(document));
      } else {
        log::warn("{}: id {} occurs again; the last document counts", record.where(), document.example_id);
        documents[place->second] = std::move(document);
      }
    });
  }
  Gold gold;
  for (GoldDocument& document : documents) {
    if (document.annotations.empty()) {
      gold.unannotated.push_back(document.example_id);
    } else {
      gold.documents.push_back(std::move(document));
    }
  }
  text::require_gold(!gold.documents.empty(), paths, "annotated document");
  return gold;
}

void match_ids(PredictionMap& predictions, const Gold& gold, const std::string& where) {
  for (const std::int64_t id : gold.unannotated) predictions.erase(id);
  std::vector<std::int64_t> missing, unknown;
  std::set<std::int64_t> known;
  for (const GoldDocument& document : gold.documents) {
    known.insert(document.example_id);
    if (!predictions.contains(document.example_id)) missing.push_back(document.example_id);
  }
  for (const auto& [id, prediction] : predictions) {
    if (!known.contains(id)) unknown.push_back(id);
  }
  std::vector<std::string> differences;
  if (!missing.empty()) {
    differences.push_back(fmt::format("no prediction for {} gold documents: {}", missing.size(), listed(missing)));
  }
  if (!unknown.empty()) {
    differences.push_back(
        fmt::format("{} predictions for documents that are not in gold: {}", unknown.size(), listed(unknown)));
  }
  if (!differences.empty()) fail(where, "{}", fmt::join(differences, "; "));
}

}  // namespace etc::nq
