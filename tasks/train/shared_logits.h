// Serialised logits, sent from the process that computed them to the one that decodes them.
#pragma once

#include <cstddef>
#include <string>

#include "tasks/task.h"

namespace etc {

// Appends logits on the host to the bytes, bit by bit.
void append_logits(std::string& bytes, const HeadOutput& logits);

// Reads the logits that begin at `at`, and moves `at` past them.
HeadOutput take_logits(const std::string& bytes, std::size_t& at);

}  // namespace etc
