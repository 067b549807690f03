// Reads published ETC checkpoints (TensorFlow) into the parameters of this program's model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "etc_core/checkpoint/convert/report.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/tensor/tensor.h"

namespace etc::convert {

// The optimizer's step among the variables of a TensorFlow checkpoint.
constexpr const char* kGlobalStep = "global_step";

struct TfEtcOptions {
  bool keep_heads = true;             // task heads whose names are known also become parameters
  bool with_optimizer_slots = false;  // also read <name>/adam_m, <name>/adam_v and global_step
  bool allow_missing = false;         // parameters without a variable are initialised, and listed in the report
  std::uint64_t seed = 1;             // of initialised parameters
};

// Other contents of a checkpoint; filled only with with_optimizer_slots.
struct TfEtcExtras {
  std::map<std::string, Tensor> slots;  // "<name>/adam_m", "<name>/adam_v"
  std::optional<std::int64_t> global_step;
};

// Adds the encoder's parameters (and kept heads) to the empty set and fills them.
// Rules: every parameter must be found with its shape (unless allow_missing), and every encoder variable of the source
//   must be a parameter;
//   position tables in both spellings; the configuration must agree with the variables (config_check.h); weights must
//   be finite. Throws Error listing all mismatches before numbers are read. Heads, slots and unknown variables are
//   listed in the report.
// Cost: reads each tensor once, straight into the parameter.
ConversionReport read_tf_etc(const TensorSource& source, const EtcConfig& config, const TfEtcOptions& options,
                             ParameterSet& parameters, TfEtcExtras& extras);

// The task to which a head's variable belongs, by its name (task specifications, etc-core 12.2); empty: no known head.
std::string head_task(std::string_view variable);

}  // namespace etc::convert
