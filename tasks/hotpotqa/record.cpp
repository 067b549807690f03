#include "tasks/hotpotqa/record.h"

#include <algorithm>
#include <limits>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "tasks/text/record_fields.h"

namespace etc::hotpotqa {

namespace {

using text::element;

// Paragraphs and sentences are numbered in 16 bits, facts in 32.
constexpr std::size_t kMostUnits = std::numeric_limits<std::int16_t>::max();
constexpr std::int64_t kLargestSentence = std::numeric_limits<std::int32_t>::max();

class RecordReader {
 public:
  RecordReader(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults)
      : fields_(raw, kRecordMembers, faults), config_(config), faults_(faults) {}

  Record read() {
    if (const Json* id = fields_.required("_id", Json::value_t::string)) {
      record_.id = fields_.text("_id", *id);
      if (record_.id.empty()) faults_.reject("_id", "id_empty", "the id is empty");
    }
    if (const Json* question = fields_.required("question", Json::value_t::string)) {
      record_.question = fields_.text("question", *question);
    }
    read_context();
    read_answer();
    read_facts();
    record_.type = informative("type", {"bridge", "comparison"});
    record_.level = informative("level", {"easy", "medium", "hard"});
    return std::move(record_);
  }

 private:
  void read_context() {
    const Json* context = fields_.required("context", Json::value_t::array);
    if (context == nullptr) return;
    if (context->empty()) faults_.reject("context", "context_empty", "there is no paragraph");
    if (context->size() > kMostUnits) {
      faults_.reject("context", "context_malformed", fmt::format("more than {} paragraphs", kMostUnits));
    }
    std::map<std::string, std::size_t> seen;
    for (std::size_t p = 0; p < context->size(); ++p) {
      Paragraph paragraph;
      if (read_paragraph((*context)[p], element("context", p), paragraph)) {
        const auto [first, fresh] = seen.try_emplace(paragraph.title, p);
        if (!fresh) {
          faults_.warn(element(element("context", p), 0), "duplicate_title",
                       fmt::format("the title {} repeats that of context[{}]; both paragraphs get its supporting facts",
                                   prepare::quoted(paragraph.title), first->second));
        }
      }
      std::int64_t& longest = longest_.try_emplace(paragraph.title, -1).first->second;
      longest = std::max(longest, std::ssize(paragraph.sentences));
      record_.context.push_back(std::move(paragraph));
    }
  }

  // False, with a fault, when the entry is not [string, array of strings].
  bool read_paragraph(const Json& entry, const text::FieldPath& field, Paragraph& paragraph) {
    const auto malformed = [&](const text::FieldPath& where, const char* expected, const Json& got) {
      faults_.reject(where.words(), "context_malformed", fmt::format("expected {}, got {}", expected, got.type_name()));
      return false;
    };
    if (!entry.is_array() || entry.size() != 2) return malformed(field, "[title, sentences]", entry);
    const text::FieldPath title = field.element(0), sentences = field.element(1);
    if (!entry[0].is_string()) return malformed(title, "a string", entry[0]);
    paragraph.title = fields_.text(title, entry[0]);
    if (!entry[1].is_array()) return malformed(sentences, "an array of strings", entry[1]);
    if (entry[1].size() > kMostUnits) {
      faults_.reject(sentences.words(), "context_malformed", fmt::format("more than {} sentences", kMostUnits));
      return false;
    }
    paragraph.sentences.reserve(entry[1].size());
    for (std::size_t s = 0; s < entry[1].size(); ++s) {
      const text::FieldPath where = sentences.element(s);
      if (!entry[1][s].is_string()) return malformed(where, "a string", entry[1][s]);
      paragraph.sentences.push_back(fields_.text(where, entry[1][s]));
      if (paragraph.sentences.back().empty())
        faults_.warn_quietly(where.words(), "unit_empty", "the sentence is empty");
    }
    if (paragraph.title.empty()) faults_.warn_quietly(title.words(), "unit_empty", "the title is empty");
    return true;
  }

  void missing_label(const char* key) {
    if (config_.labels_required) faults_.reject(key, "label_missing", fmt::format("the record has no {}", key));
  }

  void read_answer() {
    const Json* answer = fields_.find("answer");
    if (answer == nullptr) return missing_label("answer");
    if (!answer->is_string()) return fields_.wrong_type("answer", "a string", *answer);
    record_.answer = fields_.text("answer", *answer);
    const std::string trimmed = data::lower_case(data::strip(*record_.answer));
    if ((trimmed == "yes" || trimmed == "no") && trimmed != *record_.answer) {
      faults_.warn(
          "answer", "yes_no_variant",
          fmt::format("{} is not the exact word, so it is searched in the text", prepare::quoted(*record_.answer)));
    }
  }

  void read_facts() {
    const Json* facts = fields_.find("supporting_facts");
    if (facts == nullptr) return missing_label("supporting_facts");
    if (!facts->is_array()) return fields_.wrong_type("supporting_facts", "an array", *facts);
    record_.supporting_facts.emplace();
    for (std::size_t i = 0; i < facts->size(); ++i) read_fact((*facts)[i], element("supporting_facts", i));
  }

  void read_fact(const Json& entry, const std::string& field) {
    const bool formed = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number_integer() &&
                        entry[1] >= 0 && entry[1] <= kLargestSentence;
    if (!formed) {
      faults_.reject(field, "sf_malformed", "expected [title, sentence number from 0]");
      return;
    }
    const SupportingFact fact{fields_.text(element(field, 0), entry[0]), entry[1]};
    if (!facts_.insert(fact).second) {
      faults_.warn(field, "sf_duplicate", "the supporting fact is listed twice");
    }
    record_.supporting_facts->push_back(fact);
    check_fact(fact, field);
  }

  void check_fact(const SupportingFact& fact, const std::string& field) {
    const auto found = longest_.find(fact.title);
    const std::int64_t longest = found == longest_.end() ? -1 : found->second;
    if (longest < 0) {
      record_.fact_title_unknown = true;
      faults_.warn(element(field, 0), "sf_title_unknown",
                   fmt::format("{} is no title of the context", prepare::quoted(fact.title)));
    } else if (fact.sentence >= longest) {
      record_.fact_out_of_range = true;
      faults_.warn(element(field, 1), "sf_sentence_range",
                   fmt::format("sentence {} cited, paragraph {} has {} sentences", fact.sentence,
                               prepare::quoted(fact.title), longest));
    }
  }

  std::string informative(const char* key, std::initializer_list<std::string_view> known) {
    const Json* value = fields_.find(key);
    if (value == nullptr) return "";
    std::string text = value->is_string() ? value->get<std::string>() : "";
    if (std::find(known.begin(), known.end(), text) == known.end()) faults_.count(std::string("unknown_value ") + key);
    return text;
  }

  text::RecordFields fields_;
  const PrepareConfig& config_;
  prepare::FaultList& faults_;
  Record record_;
  std::map<std::string, std::int64_t> longest_;  // sentences of the longest paragraph with a title
  std::set<SupportingFact> facts_;               // that were read
};

}  // namespace

std::map<std::string, std::set<std::int64_t>> Record::facts_by_title() const {
  std::map<std::string, std::set<std::int64_t>> result;
  if (!supporting_facts) return result;
  for (const SupportingFact& fact : *supporting_facts) result[fact.title].insert(fact.sentence);
  return result;
}

Record read_record(const data::JsonRecord& raw, const PrepareConfig& config, prepare::FaultList& faults) {
  return RecordReader(raw, config, faults).read();
}

}  // namespace etc::hotpotqa
