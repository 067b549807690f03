// NEZHA ("Neural Contextualized Representation for Chinese Language Understanding", Wei et al. 2019): BERT without
// absolute positions, with one fixed table of clipped distances on keys and values.
#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/bert/dense_bert.h"
#include "etc_core/checkpoint/convert/dense/families.h"
#include "etc_core/checkpoint/convert/model_type.h"

namespace etc::convert {

namespace {

constexpr std::string_view kPrefix = "nezha.";
constexpr const char* kTable = "positions_encoding";

struct NezhaConfig {
  std::int64_t max_relative_position = 64;
  bool use_relative_position = true;
};

const FieldList<NezhaConfig>& fields() {
  static const FieldList<NezhaConfig> kFields{
      {"max_relative_position",
       &NezhaConfig::max_relative_position,
       "farther tokens count as this far",
       {.least = 1, .most = 1 << 15}},
      {"use_relative_position", &NezhaConfig::use_relative_position, "distances on keys and values"},
  };
  return kFields;
}

// The name without the prefix, as in BERT.
std::string_view without_prefix(std::string_view stored) {
  return stored.starts_with(kPrefix) ? stored.substr(kPrefix.size()) : stored;
}

}  // namespace

ForeignEncoder nezha_encoder(const Json& json, const std::string& where, const TensorSource& source) {
  require_model_type(json, where, "nezha");
  const NezhaConfig own = fields().read(json, where);
  if (!own.use_relative_position) {
    fail_usage(where, "use_relative_position: expected true, got false: without distances it is a BERT (--from bert)");
  }
  ForeignEncoder foreign = bert_encoder(bert_config_from_json(json, where), BertKind::bert, source);
  foreign.kind = "NEZHA";
  foreign.config.max_absolute_position_embeddings = 0;
  foreign.config.relative_positions = DenseConfig::Method::nezha_index;
  foreign.config.relative_clip = own.max_relative_position;
  foreign.place = [place = foreign.place](std::string_view stored) -> StoredPlace {
    if (stored.find(kTable) != std::string_view::npos) return {};
    StoredPlace found = place(without_prefix(stored));
    return found.parameter == "bert/embeddings/position_embeddings" ? StoredPlace() : found;
  };
  foreign.why_left_out = [why = foreign.why_left_out](std::string_view stored) -> std::string {
    if (stored.find(kTable) != std::string_view::npos) return "the table of sines, which is computed";
    if (stored.find("position_embeddings") != std::string_view::npos) return "absolute positions: NEZHA reads none";
    return why(without_prefix(stored));
  };
  foreign.is_encoder = [is = foreign.is_encoder](std::string_view stored) { return is(without_prefix(stored)); };
  return foreign;
}

}  // namespace etc::convert
