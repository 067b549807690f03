// Tensors of a source without a parameter: heads and optimizer slots may be left out, the encoder's tensors may not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "etc_core/checkpoint/convert/tensor_source.h"

namespace etc::convert {

// Whether the tensor is an optimizer's or moving average's companion of another one: TensorFlow appends to that one's
// name, "…/kernel/Adam".
bool is_beside_another(const TensorSource& source, std::string_view stored);

// Throws Error unless both are empty: "7 unmatched: c absent; d: expected [8], got F32 [2]; encoder variables without a
// parameter: a F32 [8], … and 1 more (…)".
//   faults     all problems with the parameters' tensors
//   unplaced   the encoder's tensors without a parameter; the message names the first few
void require_all_matched(const TensorSource& source, std::vector<std::string> faults,
                         const std::vector<std::string>& unplaced);

}  // namespace etc::convert
