// Tensors of a source that no parameter takes: heads and optimizer slots may be left out, the encoder's may not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "etc_core/checkpoint/convert/tensor_source.h"

namespace etc::convert {

// Whether an optimizer or an average keeps the tensor beside another one: TensorFlow names it after that,
// "…/kernel/Adam".
bool is_beside_another(const TensorSource& source, std::string_view stored);

// Throws Error unless both are empty: "7 unmatched: c absent; d: expected [8], got F32 [2]; encoder variables without a
// parameter: a F32 [8], … and 1 more (…)".
//   faults     what is wrong with the parameters' tensors, all of it
//   unplaced   the encoder's tensors that no parameter takes, the first few of which are named
void require_all_matched(const TensorSource& source, std::vector<std::string> faults,
                         const std::vector<std::string>& unplaced);

}  // namespace etc::convert
