// What the variables of a published checkpoint say about its configuration (etc-core 2.3, 12.2).
#pragma once

#include <string>
#include <vector>

#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/etc_config.h"

namespace etc::convert {

// The name of an encoder variable as the model has it: the position tables are spelled with and without the prefix.
std::string model_name(std::string_view variable);

// One sentence for each field of the configuration that the encoder's variables contradict, naming the field, both
// values and the variable that shows it; empty when none does. Fields without a trace in the variables (radius,
// distances, order of the norms, …) are not judged.
//   variables   the encoder's, under their model_name
std::vector<std::string> contradictions(const EtcConfig& config, const SourceTensors& variables);

}  // namespace etc::convert
