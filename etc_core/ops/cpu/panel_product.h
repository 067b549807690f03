// The fp32 product of a dense layer with weights that are packed in panels (panels.h).
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/dense_product.h"

namespace etc::ops::cpu {

// The columns of p.y that belong to `panels` panels whose first has number `first_panel`; `packed` starts with that
// panel, [k, 192] each, the last of W narrower.
void multiply_panels(const DenseProduct& p, std::int64_t first_panel, std::int64_t panels, const float* packed);

}  // namespace etc::ops::cpu
