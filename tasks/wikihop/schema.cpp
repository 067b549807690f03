#include "tasks/wikihop/schema.h"

#include "tasks/feed/multihop_schema.h"

namespace etc::wikihop {

const data::Schema& schema() {
  using data::FeatureKind;
  using data::StoredType;
  static const feed::FeatureSpecs kOfLong = {
      {"l2g_linked_ids", FeatureKind::ragged, StoredType::i16, "long", {}, -1},
  };
  static const feed::FeatureSpecs kOthers = {
      {"label_id", FeatureKind::scalar, StoredType::i32, "", -1, {}},
      {"num_candidates", FeatureKind::scalar, StoredType::i16, "", {}, {}},
      {"num_query_tokens", FeatureKind::scalar, StoredType::i16, "", {}, {}},
      {"num_documents", FeatureKind::scalar, StoredType::i16, "", {}, {}},
      {"query", FeatureKind::string, StoredType::u8, "", {}, {}},
      {"answer", FeatureKind::string, StoredType::u8, "", {}, {}},
      {"candidates", FeatureKind::strings, StoredType::u8, "candidate", {}, {}},
      {"sentences_before", FeatureKind::scalar, StoredType::i32, "", {}, {}},
      {"sentences_after", FeatureKind::scalar, StoredType::i32, "", {}, {}},
      {"doc_tokens_before", FeatureKind::scalar, StoredType::i32, "", {}, {}},
      {"doc_tokens_after", FeatureKind::scalar, StoredType::i32, "", {}, {}},
  };
  static const data::Schema kSchema{"wikihop", feed::multihop_features(kOfLong, kOthers)};
  return kSchema;
}

}  // namespace etc::wikihop
