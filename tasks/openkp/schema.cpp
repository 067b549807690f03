#include "tasks/openkp/schema.h"

#include "etc_core/base/json.h"

namespace etc::openkp {

namespace {

using data::FeatureKind;
using data::StoredType;

// Fixed blocks take the place of the page's elements.
bool has_elements(const Json& settings) {
  const auto length = settings.is_object() ? settings.find("fixed_block_len") : settings.end();
  return length == settings.end() || !length->is_number() || *length <= 0;
}

data::FeatureSpec of_elements(const char* name, StoredType type) {
  return {name, FeatureKind::ragged, type, "vdom", {}, 0, has_elements};
}

}  // namespace

const data::Schema& schema() {
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
                                        of_elements("x_coords", StoredType::f32),
                                        of_elements("y_coords", StoredType::f32),
                                        of_elements("widths", StoredType::f32),
                                        of_elements("heights", StoredType::f32),
                                        of_elements("parent_x_coords", StoredType::f32),
                                        of_elements("parent_y_coords", StoredType::f32),
                                        of_elements("parent_widths", StoredType::f32),
                                        of_elements("parent_heights", StoredType::f32),
                                        of_elements("font_ids", StoredType::u8),
                                        of_elements("parent_font_ids", StoredType::u8),
                                        of_elements("indicators", StoredType::u8),
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
