// Only with HDF5: converts golden files into a pack.
#pragma once

#include <cstdint>
#include <filesystem>

namespace etc::gpu_check {

// Packs every golden file of the model and returns their number. If there are none, writes nothing.
std::int64_t write_pack(const std::filesystem::path& output);

}  // namespace etc::gpu_check
