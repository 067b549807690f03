#include "tasks/pretrain/schema.h"

namespace etc::pretrain {

const data::Schema& schema() {
  using data::FeatureKind;
  using data::StoredType;
  static const data::Schema kSchema{"pretrain",
                                    {
                                        {"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                                        {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                                        {"long_token_ids", FeatureKind::ragged, StoredType::i32, "long", {}, 0},
                                        {"piece_kinds", FeatureKind::ragged, StoredType::u8, "long", {}, 0},
                                        {"first_segment_length", FeatureKind::scalar, StoredType::i32, "", {}, {}},
                                        {"next_sentence_label", FeatureKind::scalar, StoredType::i8, "", -1, {}},
                                        {"masked_positions", FeatureKind::ragged, StoredType::i32, "masked", {}, 0},
                                        {"masked_input_ids", FeatureKind::ragged, StoredType::i32, "masked", {}, 0},
                                        {"sentence_lengths", FeatureKind::ragged, StoredType::i32, "global", {}, 0},
                                        {"cpc_sentences", FeatureKind::ragged, StoredType::i32, "", {}, {}},
                                        {kSettings, FeatureKind::string, StoredType::u8, "", {}, {}},
                                    }};
  return kSchema;
}

}  // namespace etc::pretrain
