#include "tasks/hotpotqa/schema.h"

#include "etc_core/base/json.h"
#include "tasks/feed/multihop_schema.h"

namespace etc::hotpotqa {

namespace {

using data::FeatureKind;
using data::StoredType;

bool has_unigrams(const Json& settings) {
  return !settings.is_object() || settings.value("tokenizer", Json()) != "sentencepiece";
}

}  // namespace

const data::Schema& schema() {
  static const feed::FeatureSpecs kOfLong = {
      {"long_tokens_to_unigrams", FeatureKind::ragged, StoredType::i32, "long", {}, -1, has_unigrams},
  };
  static const feed::FeatureSpecs kOthers = {
      {"global_paragraph_ids", FeatureKind::ragged, StoredType::i16, "global", {}, -1},
      {"global_sentence_ids", FeatureKind::ragged, StoredType::i16, "global", {}, -1},
      {"global_true_sentence_ids", FeatureKind::ragged, StoredType::i16, "global", {}, -1},
      {"supporting_facts", FeatureKind::ragged, StoredType::u8, "global", {}, 0},
      {"global_text", FeatureKind::strings, StoredType::u8, "global", {}, {}},
      {"answer_types", FeatureKind::scalar, StoredType::i8, "", -1, {}},
      {"answer_begins", FeatureKind::scalar, StoredType::i32, "", -1, {}},
      {"answer_ends", FeatureKind::scalar, StoredType::i32, "", -1, {}},
      {"span_begins", FeatureKind::ragged, StoredType::i32, "span", {}, {}},
      {"span_ends", FeatureKind::ragged, StoredType::i32, "span", {}, {}},
      {"question", FeatureKind::string, StoredType::u8, "", {}, {}},
      {"answer", FeatureKind::string, StoredType::u8, "", {}, {}},
      {"type", FeatureKind::string, StoredType::u8, "", {}, {}},
      {"level", FeatureKind::string, StoredType::u8, "", {}, {}},
      {"paragraph_titles", FeatureKind::strings, StoredType::u8, "paragraph", {}, {}},
      {"gold_sf_titles", FeatureKind::strings, StoredType::u8, "gold_sf", {}, {}},
      {"gold_sf_sentences", FeatureKind::ragged, StoredType::i32, "gold_sf", {}, {}},
  };
  static const data::Schema kSchema{"hotpotqa", feed::multihop_features(kOfLong, kOthers)};
  return kSchema;
}

}  // namespace etc::hotpotqa
