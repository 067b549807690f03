// What the raw inputs of a preparation are: files, or streams that can be read only once.
#pragma once

#include <filesystem>

namespace etc::prepare {

// Throws UsageError when there is no such input or it is a folder, Error when it cannot be looked at.
void check_input(const std::filesystem::path& input);

// Standard input ("-") or anything else without a size: a FIFO, a pipe behind /dev/stdin. check_input() comes first.
bool is_stream(const std::filesystem::path& input);

// Whether both are there and one file, by whatever names. Standard input is no other file.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace etc::prepare
