#include "tasks/pretrain/objective.h"

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::pretrain {

bool masks_whole_words(const Json& key, Objective objective, const std::string& where, const std::string& shown) {
  if (key.is_null()) return objective != Objective::mlm_nsp;
  if (!key.is_boolean()) fail_usage(where, "{}: expected true, false or null, got {}", shown, json_line(key));
  return key.get<bool>();
}

}  // namespace etc::pretrain
