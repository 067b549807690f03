// Scalars for TensorBoard, written without it: an events file is TFRecords of Event messages.
//
// TFRecord: length (u64), masked CRC-32C of these 8 bytes (u32), data, masked CRC-32C of the data (u32), little endian.
// Event (protocol buffer): 1 wall_time double, 2 step int64, 3 file_version string, 5 summary { 1 value { 1 tag string,
// 2 simple_value float } }, 7 session_log { 1 status, START = 1 } }.
//
// A resumed run writes a file of its own. What the files before it hold beyond the step it resumes from is cut off, so
// that whoever reads the folder sees each step once; and the new file begins with a START at the first step that comes
// again, which makes a TensorBoard that has read those steps already forget them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tasks/train/appended_file.h"

namespace etc {

class TensorBoardWriter {
 public:
  // Creates events.out.tfevents.<seconds>.<process>.etc in the folder, its name behind those of the files that are
  // there, which are cut behind `resumed_step`.
  TensorBoardWriter(const std::filesystem::path& folder, std::int64_t resumed_step);

  // One event with all scalars of a step, written at once. False while the disk refuses; the event is kept (see
  // AppendedFile).
  bool add(std::int64_t step, double wall_time, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  TensorBoardWriter(const std::filesystem::path& folder, std::int64_t resumed_step,
                    const std::vector<std::filesystem::path>& older);
  bool record(const std::string& event);
  AppendedFile file_;
};

// Cuts an events file behind its last event of at most this step, and whatever is not a whole record. A file without a
// whole record is left alone.
void cut_tensorboard(const std::filesystem::path& path, std::int64_t step);

// How much of an events file is whole: records whose lengths and checksums hold, and the bytes behind them.
struct TensorBoardSummary {
  std::int64_t records = 0;
  std::int64_t trailing_bytes = 0;
};

// Throws Error when the file does not begin with a whole record.
TensorBoardSummary read_tensorboard(const std::filesystem::path& path);

}  // namespace etc
