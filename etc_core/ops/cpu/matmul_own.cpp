// The choice of the fp32 product without oneDNN (ETC_ONEDNN=OFF): our own micro-kernel. Replaces matmul_onednn.cpp.
#include "etc_core/ops/cpu/panel_kernel.h"
#include "etc_core/ops/cpu/reduced_product.h"
#include "etc_core/ops/library_versions.h"

namespace etc::ops::cpu {

const PanelKernel& panel_kernel() {
  return kStripPanels;
}

}  // namespace etc::ops::cpu

namespace etc::ops {

std::string product_library() {
  return cpu::fp32_in_parts() ? cpu::kProductsOfParts : cpu::kOwnProducts;
}

std::int64_t product_library_bytes() {
  return 0;
}

}  // namespace etc::ops
