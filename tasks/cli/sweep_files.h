// What `etc benchmark` writes: the measurements as a table (CSV), and pictures of time and memory against the length.
#pragma once

#include <filesystem>
#include <vector>

#include "tasks/cli/length_sweep.h"

namespace etc::cli {

// The files written by write_sweep().
inline constexpr const char* kSweepFiles[] = {"benchmark.csv", "time.svg", "memory.svg"};

// Throws UsageError when the folder holds files with these names but no benchmark.csv of an earlier benchmark.
void require_no_others(const std::filesystem::path& folder);

// The table holds the measured rows. The pictures also show the forecasts, of rows that do not fit nothing else; their
// titles name the measured settings. Throws Error when a file cannot be written.
void write_sweep(const SweepOptions& options, const std::vector<SweepRow>& rows, const std::filesystem::path& folder);

}  // namespace etc::cli
