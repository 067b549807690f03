// Scalars for TensorBoard, written without the TensorBoard library: an events file is TFRecords of Event messages.
//
// TFRecord: length (u64), masked CRC-32C of these 8 bytes (u32), data, masked CRC-32C of the data (u32), little endian.
// Event (protocol buffer): 1 wall_time double, 2 step int64, 3 file_version string, 5 summary { 1 value { 1 tag string,
// 2 simple_value float } }, 7 session_log { 1 status, START = 1 } }.
//
// A resumed run writes a file of its own. Earlier files are truncated after the step it resumes from, so that readers
// of the folder see each step once. The new file begins with a START event at the first repeated step, which makes a
// running TensorBoard discard the steps it has already read.
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
  // Creates events.out.tfevents.<seconds>.<process>.etc in the folder, with a name that sorts after those of the
  // existing files, which are truncated after `resumed_step`.
  TensorBoardWriter(const std::filesystem::path& folder, std::int64_t resumed_step);

  // One event with all scalars of a step, written at once. False while the disk refuses writes; the event is then kept
  // (see AppendedFile).
  bool add(std::int64_t step, double wall_time, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  TensorBoardWriter(const std::filesystem::path& folder, std::int64_t resumed_step,
                    const std::vector<std::filesystem::path>& older);
  bool record(const std::string& event);
  AppendedFile file_;
};

// Truncates an events file after its last event of at most this step, and drops incomplete records. A file without a
// complete record is left alone.
void cut_tensorboard(const std::filesystem::path& path, std::int64_t step);

// How much of an events file is intact: records with correct lengths and checksums, and the bytes after them.
struct TensorBoardSummary {
  std::int64_t records = 0;
  std::int64_t trailing_bytes = 0;
};

// Throws Error when the file does not begin with an intact record.
TensorBoardSummary read_tensorboard(const std::filesystem::path& path);

}  // namespace etc
