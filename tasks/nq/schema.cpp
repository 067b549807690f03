#include "tasks/nq/schema.h"

#include <algorithm>
#include <array>

namespace etc::nq {

namespace {

using data::FeatureKind;
using data::StoredType;

constexpr std::array kCandidateFeatures = {"global_type_id", "global_candidate_ids", "global_token_pos_start",
                                           "global_token_pos_end"};

data::Schema full_schema() {
  const auto scalar = [](const char* name, StoredType type) {
    return data::FeatureSpec{name, FeatureKind::scalar, type, "", {}, {}};
  };
  const auto ragged = [](const char* name, StoredType type, const char* align) {
    return data::FeatureSpec{name, FeatureKind::ragged, type, align, {}, {}};
  };
  const auto padded = [&](const char* name, StoredType type, const char* align, auto pad) {
    data::FeatureSpec spec = ragged(name, type, align);
    spec.pad_value = pad;
    return spec;
  };
  data::Schema schema;
  schema.task = "nq";
  schema.features = {
      {"id", FeatureKind::string, StoredType::u8, "", {}, {}},
      scalar("unique_ids", StoredType::i64),
      scalar("record_index", StoredType::i64),
      scalar("window_index", StoredType::i32),
      scalar("window_start", StoredType::i32),
      scalar("is_last_window", StoredType::u8),
      padded("token_ids", StoredType::i32, "long", "PAD id"),
      padded("candidate_ids", StoredType::i32, "long", -1),
      padded("token_pos", StoredType::i32, "long", -1),
      padded("sentence_ids", StoredType::i32, "long", "last"),
      padded("global_token_ids", StoredType::i32, "global", 0),
      padded("global_type_id", StoredType::i8, "global", 0),
      padded("global_candidate_ids", StoredType::i32, "global", -1),
      padded("global_token_pos_start", StoredType::i32, "global", 0),
      padded("global_token_pos_end", StoredType::i32, "global", 0),
      padded("question_ids", StoredType::i32, "question", 0),
      scalar("sa_start", StoredType::i32),
      scalar("sa_end", StoredType::i32),
      scalar("la_start", StoredType::i32),
      scalar("la_end", StoredType::i32),
      scalar("la_global", StoredType::i32),
      scalar("answer_type", StoredType::i8),
  };
  schema.gold = {
      scalar("example_id", StoredType::i64),
      ragged("long_start_token", StoredType::i64, "annotation"),
      ragged("long_end_token", StoredType::i64, "annotation"),
      ragged("long_start_byte", StoredType::i64, "annotation"),
      ragged("long_end_byte", StoredType::i64, "annotation"),
      ragged("yes_no", StoredType::u8, "annotation"),
      ragged("short_count", StoredType::i32, "annotation"),
      ragged("short_start_token", StoredType::i64, "short"),
      ragged("short_end_token", StoredType::i64, "short"),
      ragged("short_start_byte", StoredType::i64, "short"),
      ragged("short_end_byte", StoredType::i64, "short"),
  };
  return schema;
}

data::Schema without_candidates(data::Schema schema) {
  std::erase_if(schema.features, [](const data::FeatureSpec& spec) {
    return std::find(kCandidateFeatures.begin(), kCandidateFeatures.end(), spec.name) != kCandidateFeatures.end();
  });
  return schema;
}

data::Schema fixed_block_schema() {
  data::Schema schema = without_candidates(full_schema());
  for (data::FeatureSpec& spec : schema.features) {
    if (spec.name == "sentence_ids") spec.pad_value = 0;
  }
  return schema;
}

}  // namespace

const data::Schema& schema(bool fixed_blocks) {
  static const data::Schema kCandidates = full_schema();
  static const data::Schema kFixedBlocks = fixed_block_schema();
  return fixed_blocks ? kFixedBlocks : kCandidates;
}

const data::Schema& model_schema() {
  static const data::Schema kCommon = without_candidates(full_schema());
  return kCommon;
}

}  // namespace etc::nq
