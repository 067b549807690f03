#include "tasks/openkp/schema.h"

namespace etc::openkp {

const data::Schema& schema() {
  using data::FeatureKind;
  using data::StoredType;
  static const data::Schema kSchema{"openkp",
                                    {
                                        {"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                                        {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                                        {"long_token_ids", FeatureKind::ragged, StoredType::i32, "long", {}, 0},
                                        {"long_word_idx", FeatureKind::ragged, StoredType::i32, "long", {}, 0},
                                        {"long_vdom_idx", FeatureKind::ragged, StoredType::i32, "long", {}, 0},
                                        {"num_words", FeatureKind::scalar, StoredType::i32, "", {}, {}},
                                        {"num_words_text", FeatureKind::scalar, StoredType::i32, "", {}, {}},
                                        {"label_start_idx", FeatureKind::ragged, StoredType::i32, "label", {}, -1},
                                        {"label_phrase_len", FeatureKind::ragged, StoredType::i32, "label", {}, -1},
                                        {"x_coords", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"y_coords", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"widths", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"heights", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"parent_x_coords", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"parent_y_coords", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"parent_widths", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"parent_heights", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"font_ids", FeatureKind::ragged, StoredType::u8, "vdom", {}, 0},
                                        {"parent_font_ids", FeatureKind::ragged, StoredType::u8, "vdom", {}, 0},
                                        {"indicators", FeatureKind::ragged, StoredType::u8, "vdom", {}, 0},
                                        {"first_occurrence", FeatureKind::ragged, StoredType::i32, "", {}, {}},
                                        {"text", FeatureKind::string, StoredType::u8, "", {}, {}},
                                        {"key_phrases", FeatureKind::strings, StoredType::u8, "", {}, {}},
                                    },
                                    "long",
                                    "vdom",
                                    {},  // no gold: the examples hold it
                                    {{"key_phrases", FeatureKind::strings, StoredType::u8, "", {}, {}}}};
  return kSchema;
}

}  // namespace etc::openkp
