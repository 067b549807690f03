// Rows of a data set as bytes, on their way from the process that made them to the one that writes them.
#pragma once

#include <cstddef>
#include <string>

#include "data/dataset.h"

namespace etc::cli {

// Features that are a string or a list of integers or of floats; bit by bit, behind what is there.
void append_row(std::string& bytes, const data::Example& row);

// The row that begins at `at`, which is moved behind it.
data::Example take_row(const std::string& bytes, std::size_t& at);

}  // namespace etc::cli
