// The fp32 product of a dense layer with weights packed in panels (panels.h).
#pragma once

#include <cstdint>

#include "etc_core/ops/cpu/dense_product.h"

namespace etc::ops::cpu {

// Computes the columns of p.y that belong to `panels` panels from panel number `first_panel` on. `packed` starts with
// that panel; each is [k, 192], the last one of W narrower.
void multiply_panels(const DenseProduct& p, std::int64_t first_panel, std::int64_t panels, const float* packed);

}  // namespace etc::ops::cpu
