#include "tasks/hotpotqa/prediction_file.h"

#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tasks/text/raw_records.h"

namespace etc::hotpotqa {

namespace {

std::vector<SupportingFact> parse_facts(const text::JsonField& list) {
  std::vector<SupportingFact> facts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const text::JsonField fact = list.element(i);
    if (fact.size() != 2) fact.fail_type("[title, sentence number]");
    facts.push_back({fact.element(0).string(), fact.element(1).integer()});
  }
  return facts;
}

}  // namespace

PredictionSet parse_predictions(const text::JsonField& file) {
  PredictionSet set;
  const text::JsonField answers = file.member("answer"), facts = file.member("sp");
  answers.require_object();
  facts.require_object();
  for (const auto& [id, value] : answers.json().items()) set.answers[id] = answers.member(id).string();
  for (const auto& [id, value] : facts.json().items()) set.supporting_facts[id] = parse_facts(facts.member(id));
  return set;
}

PredictionSet read_predictions(const std::filesystem::path& path) {
  const Json json = parse_json(read_file(path), path.string());
  return parse_predictions({json, path.string()});
}

GoldRecord parse_gold(const text::JsonField& record) {
  GoldRecord gold;
  gold.id = record.member("_id").string();
  const text::JsonField named = record.named(record.where() + ": id " + gold.id);
  gold.answer = named.member("answer").string();
  gold.supporting_facts = parse_facts(named.member("supporting_facts"));
  return gold;
}

std::vector<GoldRecord> read_gold(const std::vector<std::filesystem::path>& paths) {
  std::vector<GoldRecord> gold;
  text::IdPlaces ids;
  for (const auto& path : paths) {
    text::for_each_record(path, data::RecordLayout::array, [&](const text::JsonField& record) {
      gold.push_back(parse_gold(record));
      ids.add(gold.back().id, record);
    });
  }
  text::require_gold(!gold.empty(), paths, "record");
  return gold;
}

}  // namespace etc::hotpotqa
