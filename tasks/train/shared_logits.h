// Logits as bytes, on their way from the process that computed them to the one that decodes them.
#pragma once

#include <cstddef>
#include <string>

#include "tasks/task.h"

namespace etc {

// Logits on the host, behind what is there; bit by bit.
void append_logits(std::string& bytes, const HeadOutput& logits);

// The logits that begin at `at`, which is moved behind them.
HeadOutput take_logits(const std::string& bytes, std::size_t& at);

}  // namespace etc
