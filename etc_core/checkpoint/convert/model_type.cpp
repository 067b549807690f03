#include "etc_core/checkpoint/convert/model_type.h"

#include <array>
#include <string_view>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/words.h"

namespace etc::convert {

namespace {

struct ModelType {
  const char *name, *family;
};
// Differences between the types of a family (widths of embeddings, blocks of attention) are given by other keys of
// their configurations.
constexpr std::array<ModelType, 9> kModelTypes = {{{"bert", "bert"},
                                                   {"electra", "bert"},
                                                   {"big_bird", "bert"},
                                                   {"roberta", "roberta"},
                                                   {"xlm-roberta", "roberta"},
                                                   {"camembert", "roberta"},
                                                   {"nezha", "nezha"},
                                                   {"xlnet", "xlnet"},
                                                   {"t5", "t5"}}};

// The option that would read a model of this type.
std::string hint(const Json& model_type) {
  for (const ModelType& one : kModelTypes) {
    if (model_type != one.name) continue;
    const std::string_view family = one.family;
    const bool lifted = family == "bert" || family == "roberta";
    return fmt::format("--from {}{}", family, lifted ? "" : " --as dense");
  }
  return "no --from reads it: it may compute something else";
}

}  // namespace

void require_model_type(const Json& json, const std::string& where, const std::string& family) {
  if (!json.is_object()) fail_usage(where, "expected an object with the sizes of the model");
  const auto found = json.find("model_type");
  if (found == json.end()) return;
  std::vector<std::string> expected;
  for (const ModelType& one : kModelTypes) {
    if (family != one.family) continue;
    if (*found == one.name) return;
    expected.push_back(fmt::format("\"{}\"", one.name));
  }
  fail_usage(where, "model_type: expected {}, got {} ({})", alternatives(expected), json_line(*found), hint(*found));
}

}  // namespace etc::convert
