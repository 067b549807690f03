// Attention on bf16 rows must give the same bits as the same kernels on the same numbers in fp32, rounded.
#pragma once

#include <string>

#include "etc_core/base/device.h"
#include "tests/sparse/attention_support.h"

namespace etc::test {

// Forward and backward of a case in bf16, without running scores. Returns the names of the results that differ, or "".
std::string different_in_bf16_rows(const AttentionCase& attention_case, Side side, Device device);

}  // namespace etc::test
