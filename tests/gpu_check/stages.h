// The stages of gpu-check. Each adds its cases to the report; the backend is open.
#pragma once

#include <filesystem>

#include "tests/gpu_check/report.h"

namespace etc::gpu_check {

void smoke(Report& report);      // memory, copies, one kernel, one product
void operators(Report& report);  // dense operators against the CPU's
void kernels(Report& report);    // these, and attention against its reference on the tests' shapes
// The tiny models against the CPU's and, with a pack of golden numbers (empty: none), against those.
void model(Report& report, const std::filesystem::path& pack);
void bench(Report& report);  // rates of operators and of the base model

}  // namespace etc::gpu_check
