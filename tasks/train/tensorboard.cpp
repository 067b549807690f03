#include "tasks/train/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <ctime>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc {

namespace {

constexpr std::uint32_t kCastagnoli = 0x82F63B78u;  // the polynomial, bits reversed

template <typename T>
void append_little_endian(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes += static_cast<char>(value >> (8 * i));
}

void append_varint(std::string& bytes, std::uint64_t value) {
  while (value >= 0x80) {
    bytes += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  bytes += static_cast<char>(value);
}

// Field keys are number * 8 + wire type (0 varint, 1 eight bytes, 2 length-delimited, 5 four bytes).
void append_text(std::string& bytes, char key, std::string_view text) {
  bytes += key;
  append_varint(bytes, text.size());
  bytes += text;
}

std::string event_start(double wall_time, std::int64_t step) {
  std::string event;
  event += '\x09';  // 1: wall_time
  append_little_endian(event, std::bit_cast<std::uint64_t>(wall_time));
  event += '\x10';  // 2: step
  append_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

// CRCs are stored rotated and shifted, so that a checksum of data holding checksums stays useful (TFRecord's rule).
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kCastagnoli : 0u);
      table[i] = crc;
    }
    return table;
  }();
  std::uint32_t crc = ~0u;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFFu];
  return ~crc;
}

TensorBoardWriter::TensorBoardWriter(const std::filesystem::path& folder) {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  const auto path = folder / fmt::format("events.out.tfevents.{}.{}.etc", now, ::getpid());
  file_.open(path, std::ios::binary);
  if (!file_) fail(path.string(), "cannot create");
  std::string event = event_start(static_cast<double>(now), 0);
  append_text(event, '\x1a', "brain.Event:2");  // 3: file_version
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
  record(event);
  file_.flush();
  const bool written = static_cast<bool>(file_);
  file_.clear();
  return written;
}

void TensorBoardWriter::record(const std::string& event) {
  std::string header;
  append_little_endian(header, static_cast<std::uint64_t>(event.size()));
  append_little_endian(header, masked_crc(std::string_view(header).substr(0, 8)));
  std::string footer;
  append_little_endian(footer, masked_crc(event));
  file_ << header << event << footer;
}

TensorBoardSummary read_tensorboard(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  const auto number = [&](std::size_t at, std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    }
    return value;
  };
  constexpr std::size_t kHeader = 12, kFooter = 4;
  TensorBoardSummary summary;
  std::size_t at = 0;
  while (bytes.size() - at >= kHeader + kFooter) {
    const std::uint64_t length = number(at, 8);
    if (length > bytes.size() - at - kHeader - kFooter) break;
    const std::string_view header = std::string_view(bytes).substr(at, 8);
    const std::string_view event = std::string_view(bytes).substr(at + kHeader, length);
    if (number(at + 8, 4) != masked_crc(header) || number(at + kHeader + length, 4) != masked_crc(event)) break;
    ++summary.records;
    at += kHeader + length + kFooter;
  }
  if (summary.records == 0) fail(path.string(), "expected TensorBoard events, got no whole record");
  summary.trailing_bytes = static_cast<std::int64_t>(bytes.size() - at);
  return summary;
}

}  // namespace etc
