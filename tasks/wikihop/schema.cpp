#include "tasks/wikihop/schema.h"

namespace etc::wikihop {

const data::Schema& schema() {
  using data::FeatureKind;
  using data::StoredType;
  static const data::Schema kSchema{
      "wikihop",
      {
          {"id", FeatureKind::string, StoredType::u8, "", {}, {}},
          {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
          {"flags", FeatureKind::scalar, StoredType::u32, "", {}, {}},
          {"long_token_ids", FeatureKind::ragged, StoredType::i32, "long", {}, 0},
          {"long_token_type_ids", FeatureKind::ragged, StoredType::u8, "long", {}, 0},
          {"long_sentence_ids", FeatureKind::ragged, StoredType::i16, "long", {}, -1},
          {"long_paragraph_ids", FeatureKind::ragged, StoredType::i16, "long", {}, -1},
          {"long_paragraph_breakpoints", FeatureKind::ragged, StoredType::u8, "long", {}, 0},
          {"l2g_linked_ids", FeatureKind::ragged, StoredType::i16, "long", {}, -1},
          {"global_token_ids", FeatureKind::ragged, StoredType::i32, "global", {}, 0},
          {"global_token_type_ids", FeatureKind::ragged, StoredType::u8, "global", {}, 0},
          {"global_paragraph_breakpoints", FeatureKind::ragged, StoredType::u8, "global", {}, 0},
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
      }};
  return kSchema;
}

}  // namespace etc::wikihop
