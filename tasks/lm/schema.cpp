#include "tasks/lm/schema.h"

namespace etc::lm {

const data::Schema& schema() {
  using data::FeatureKind;
  using data::StoredType;
  static const data::Schema kSchema{"lm",
                                    {
                                        {"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                                        {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                                        {"segment", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                                        {"token_ids", FeatureKind::ragged, StoredType::i32, "long", {}, {}},
                                        {"next_id", FeatureKind::scalar, StoredType::i32, "", {}, {}},
                                        {"characters", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                                    }};
  return kSchema;
}

}  // namespace etc::lm
