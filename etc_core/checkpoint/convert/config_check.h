// Checks a published checkpoint's configuration against its variables (etc-core 2.3, 12.2).
#pragma once

#include <string>
#include <vector>

#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/etc_config.h"

namespace etc::convert {

// The model's name for an encoder variable: position tables may be stored with and without the prefix.
std::string model_name(std::string_view variable);

// One sentence for each configuration field that the encoder's variables contradict, naming the field, both values and
// the variable that shows it; empty if there is none. Fields that do not affect the variables (radius, distances, order
// of the norms, …) are not checked.
//   variables   the encoder's, under their model_name
std::vector<std::string> contradictions(const EtcConfig& config, const SourceTensors& variables);

}  // namespace etc::convert
