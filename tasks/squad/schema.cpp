#include "tasks/squad/schema.h"

namespace etc::squad {

const data::Schema& schema() {
  using data::FeatureKind, data::StoredType;
  const auto scalar = [](const char* name, StoredType type) {
    return data::FeatureSpec{name, FeatureKind::scalar, type, "", {}, {}};
  };
  const auto text = [](const char* name, FeatureKind kind) {
    return data::FeatureSpec{name, kind, StoredType::u8, "", {}, {}};
  };
  const auto of_long = [](const char* name, StoredType type, std::int64_t pad) {
    return data::FeatureSpec{name, FeatureKind::ragged, type, "long", {}, pad};
  };
  const auto target = [](const char* name) {
    return data::FeatureSpec{name, FeatureKind::scalar, StoredType::i32, "", kNoTarget, {}};
  };
  static const data::Schema kSchema{
      .task = "squad",
      .features = {text("id", FeatureKind::string), scalar("record_index", StoredType::i64),
                   scalar("window_index", StoredType::i32), scalar("lower_case", StoredType::u8),
                   of_long("token_ids", StoredType::i32, 0), of_long("segment_ids", StoredType::u8, 0),
                   of_long("token_words", StoredType::i32, -1), of_long("max_context", StoredType::u8, 0),
                   scalar("first_word", StoredType::i32), text("words", FeatureKind::strings), target("start_position"),
                   target("end_position")},
      .gold = {text("id", FeatureKind::string), text("question", FeatureKind::string),
               text("answers", FeatureKind::strings), scalar("is_impossible", StoredType::u8)}};
  return kSchema;
}

}  // namespace etc::squad
