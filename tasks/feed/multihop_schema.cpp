#include "tasks/feed/multihop_schema.h"

namespace etc::feed {

FeatureSpecs multihop_features(const FeatureSpecs& of_long, const FeatureSpecs& others) {
  using data::FeatureKind;
  using data::StoredType;
  FeatureSpecs all = {
      {"id", FeatureKind::string, StoredType::u8, "", {}, {}},
      {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
      {"flags", FeatureKind::scalar, StoredType::u32, "", {}, {}},
      {"long_token_ids", FeatureKind::ragged, StoredType::i32, "long", {}, 0},
      {"long_token_type_ids", FeatureKind::ragged, StoredType::u8, "long", {}, 0},
      {"long_sentence_ids", FeatureKind::ragged, StoredType::i16, "long", {}, -1},
      {"long_paragraph_ids", FeatureKind::ragged, StoredType::i16, "long", {}, -1},
      {"long_paragraph_breakpoints", FeatureKind::ragged, StoredType::u8, "long", {}, 0},
  };
  const FeatureSpecs of_global = {
      {"global_token_ids", FeatureKind::ragged, StoredType::i32, "global", {}, 0},
      {"global_token_type_ids", FeatureKind::ragged, StoredType::u8, "global", {}, 0},
      {"global_paragraph_breakpoints", FeatureKind::ragged, StoredType::u8, "global", {}, 0},
  };
  for (const FeatureSpecs& more : {of_long, of_global, others}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace etc::feed
