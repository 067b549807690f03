// Where HDF5 is: golden files into a pack.
#pragma once

#include <cstdint>
#include <filesystem>

namespace etc::gpu_check {

// Packs every golden file of the model; returns how many there were. Without any, nothing is written.
std::int64_t write_pack(const std::filesystem::path& output);

}  // namespace etc::gpu_check
