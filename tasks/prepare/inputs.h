// The kinds of raw inputs of a preparation: files, or streams that can be read only once.
#pragma once

#include <filesystem>

namespace etc::prepare {

// Throws Error when the input does not exist, is a folder or cannot be examined.
void check_input(const std::filesystem::path& input);

// Whether it is standard input ("-") or anything else without a size: a FIFO, a pipe behind /dev/stdin. Call
// check_input() first.
bool is_stream(const std::filesystem::path& input);

// Whether both exist and are the same file under any names. Standard input equals no file.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace etc::prepare
