#include "tasks/translation/schema.h"

namespace etc::translation {

const data::Schema& schema() {
  using data::FeatureKind;
  using data::StoredType;
  static const data::Schema kSchema{"translation",
                                    {
                                        {"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                                        {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                                        {"source_ids", FeatureKind::ragged, StoredType::i32, "source", {}, {}},
                                        {"target_ids", FeatureKind::ragged, StoredType::i32, "target", {}, {}},
                                        {"reference", FeatureKind::string, StoredType::u8, "", {}, {}},
                                    },
                                    "source",
                                    "target"};
  return kSchema;
}

}  // namespace etc::translation
