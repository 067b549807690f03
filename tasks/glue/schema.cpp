#include "tasks/glue/schema.h"

namespace etc::glue {

const data::Schema& schema() {
  using data::FeatureKind, data::StoredType;
  static const data::Schema kSchema{
      .task = "glue",
      .features = {{"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                   {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                   {"data_set", FeatureKind::scalar, StoredType::u8, "", {}, {}},
                   {"token_ids", FeatureKind::ragged, StoredType::i32, "long", {}, std::int64_t{0}},
                   {"segment_ids", FeatureKind::ragged, StoredType::u8, "long", {}, std::int64_t{0}},
                   {"label", FeatureKind::scalar, StoredType::i32, "", -1, {}},
                   {"scored", FeatureKind::scalar, StoredType::u8, "", {}, {}},
                   {"score", FeatureKind::scalar, StoredType::f32, "", {}, {}}}};
  return kSchema;
}

}  // namespace etc::glue
