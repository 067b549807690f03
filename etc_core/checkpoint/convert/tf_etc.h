// Published ETC checkpoints (TensorFlow) as parameters of our own model.
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
  bool keep_heads = true;             // task heads whose names are known become parameters, too
  bool with_optimizer_slots = false;  // <name>/adam_m and /adam_v are read, too, and global_step
};

// What a checkpoint holds beside the parameters; filled with_optimizer_slots only.
struct TfEtcExtras {
  std::map<std::string, Tensor> slots;  // "<name>/adam_m", "<name>/adam_v"
  std::optional<std::int64_t> global_step;
};

// Adds the encoder's parameters (and kept heads) to the empty set and fills them.
// Rules: every parameter is found with its shape, and every encoder variable of the source is a parameter; position
//   tables in both spellings; the configuration must agree with the variables (config_check.h); weights are finite.
//   Throws Error listing everything that does not correspond, before numbers are read. Heads, slots and what is
//   unknown are listed in the report.
// Cost: reads each tensor once, straight into the parameter.
ConversionReport read_tf_etc(const TensorSource& source, const EtcConfig& config, const TfEtcOptions& options,
                             ParameterSet& parameters, TfEtcExtras& extras);

// The task a head's variable belongs to, by its name (task specifications, etc-core 12.2); empty: no head we know.
std::string head_task(std::string_view variable);

}  // namespace etc::convert
