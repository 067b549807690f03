#include "tasks/train/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <ctime>

#include "etc_core/base/crc32c.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/varint.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFilePrefix = "events.out.tfevents.", kFileSuffix = ".etc";

template <typename T>
void append_little_endian(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i));
}

// Field keys are number * 8 + wire type (0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes).
void append_text(std::string& bytes, char key, std::string_view text) {
  bytes += key;
  append_varint(bytes, text.size());
  bytes += text;
}

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return value;
}

std::string event_start(double wall_time, std::int64_t step) {
  std::string event;
  event += '\x09';  // 1: wall_time
  append_little_endian(event, std::bit_cast<std::uint64_t>(wall_time));
  event += '\x10';  // 2: step
  append_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

// Calls visit(record, its event) for the intact records (correct lengths and checksums) up to the first one that is
// not; returns the bytes they take.
template <typename Visit>
std::size_t for_each_record(std::string_view bytes, const Visit& visit) {
  constexpr std::size_t kLength = 8, kHeader = 12, kFooter = 4;
  std::size_t at = 0;
  while (bytes.size() - at >= kHeader + kFooter) {
    const std::string_view rest = bytes.substr(at);
    const std::uint64_t length = little_endian(rest.substr(0, kLength));
    if (length > rest.size() - kHeader - kFooter) break;
    const std::string_view event = rest.substr(kHeader, length);
    if (little_endian(rest.substr(kLength, 4)) != masked_crc(crc32c(rest.substr(0, kLength))) ||
        little_endian(rest.substr(kHeader + length, kFooter)) != masked_crc(crc32c(event))) {
      break;
    }
    visit(rest.substr(0, kHeader + length + kFooter), event);
    at += kHeader + length + kFooter;
  }
  return at;
}

// The step of an event that begins as event_start() writes it; any other event counts as step 0, which is never cut.
std::int64_t step_of(std::string_view event) {
  constexpr std::size_t kStepKey = 9;
  if (event.size() <= kStepKey || event[0] != '\x09' || event[kStepKey] != '\x10') return 0;
  std::string_view rest = event.substr(kStepKey + 1);
  return static_cast<std::int64_t>(take_varint(rest).value_or(0));
}

// The files a run has written here so far.
std::vector<fs::path> events_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kFilePrefix) && name.ends_with(kFileSuffix)) files.push_back(entry.path());
  }
  return files;
}

// The seconds in an events file's name; 0 when there are none.
std::int64_t seconds_of(const fs::path& file) {
  return std::strtoll(file.filename().string().c_str() + kFilePrefix.size(), nullptr, 10);
}

// Name of the next file. Readers take the files in the order of their names, so a clock that stands still or was set
// back must not determine the order.
std::string next_name(const std::vector<fs::path>& older) {
  auto seconds = static_cast<std::int64_t>(std::time(nullptr));
  for (const fs::path& file : older) seconds = std::max(seconds, seconds_of(file) + 1);
  return fmt::format("{}{}.{}{}", kFilePrefix, seconds, ::getpid(), kFileSuffix);
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const fs::path& folder, std::int64_t resumed_step)
    : TensorBoardWriter(folder, resumed_step, events_files(folder)) {}

TensorBoardWriter::TensorBoardWriter(const fs::path& folder, std::int64_t resumed_step,
                                     const std::vector<fs::path>& older)
    : file_(folder / next_name(older)) {
  for (const fs::path& file : older) cut_tensorboard(file, resumed_step);
  const double now = static_cast<double>(std::time(nullptr));
  std::string event = event_start(now, 0);
  append_text(event, '\x1a', "brain.Event:2");  // 3: file_version
  record(event);
  if (older.empty()) return;
  event = event_start(now, resumed_step + 1);
  append_text(event, '\x3a', "\x08\x01");  // 7: session_log, 1: status START
  record(event);
}

bool TensorBoardWriter::add(std::int64_t step, double wall_time,
                            const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    std::string entry;
    append_text(entry, '\x0a', tag);  // 1: tag
    entry += '\x15';                  // 2: simple_value
    append_little_endian(entry, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    append_text(summary, '\x0a', entry);  // 1: value
  }
  std::string event = event_start(wall_time, step);
  append_text(event, '\x2a', summary);  // 5: summary
  return record(event);
}

bool TensorBoardWriter::record(const std::string& event) {
  std::string header;
  append_little_endian(header, static_cast<std::uint64_t>(event.size()));
  append_little_endian(header, masked_crc(crc32c(header)));
  std::string footer;
  append_little_endian(footer, masked_crc(crc32c(event)));
  return file_.append(header + event + footer);
}

void cut_tensorboard(const fs::path& path, std::int64_t step) {
  const std::string bytes = read_file(path);
  std::string kept;
  std::size_t records = 0;
  for_each_record(bytes, [&](std::string_view whole, std::string_view event) {
    ++records;
    if (step_of(event) <= step) kept += whole;
  });
  if (records > 0 && kept.size() < bytes.size()) write_file_atomically(path, kept);
}

TensorBoardSummary read_tensorboard(const fs::path& path) {
  const std::string bytes = read_file(path);
  TensorBoardSummary summary;
  const std::size_t end = for_each_record(bytes, [&](std::string_view, std::string_view) { ++summary.records; });
  if (summary.records == 0) fail(path.string(), "expected TensorBoard events, got no whole record");
  summary.trailing_bytes = static_cast<std::int64_t>(bytes.size() - end);
  return summary;
}

}  // namespace etc
