// Checks which configuration files of the library `transformers` describe models of a family with the same computation.
#pragma once

#include <string>

#include "etc_core/base/json_fwd.h"

namespace etc::convert {

// Throws UsageError unless model_type, if the configuration has one (Google's have none), belongs to the family; the
// message names the family's types and the option for the given model.
//   family   as of --from: bert (also ELECTRA, BigBird), roberta (also XLM-RoBERTa, CamemBERT), nezha, xlnet, t5
void require_model_type(const Json& json, const std::string& where, const std::string& family);

}  // namespace etc::convert
