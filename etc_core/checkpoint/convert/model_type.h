// Which configuration files of the library `transformers` describe models that compute the same.
#pragma once

#include <string>

#include "etc_core/base/json.h"

namespace etc::convert {

// Throws UsageError unless model_type, where the configuration has one (Google's have none), is one of the family's,
// naming those and the family that the model is of.
//   family   as of --from: bert (also ELECTRA, BigBird), roberta (also XLM-RoBERTa, CamemBERT), nezha, xlnet, t5
void require_model_type(const Json& json, const std::string& where, const std::string& family);

}  // namespace etc::convert
