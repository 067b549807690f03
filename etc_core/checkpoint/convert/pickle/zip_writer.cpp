#include "etc_core/checkpoint/convert/pickle/zip_writer.h"

#include <zlib.h>

#include <cstdint>
#include <limits>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/convert/pickle/zip_archive.h"
#include "etc_core/checkpoint/convert/pickle/zip_format.h"

namespace etc::convert {

namespace {

constexpr std::uint16_t kVersion = 20, kUtf8Names = 0x0800;
constexpr std::uint16_t kMidnight = 0, kFirstDate = 0x0021;  // 1980-01-01

// Little-endian on every machine.
void put(std::string& bytes, std::uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}
void put16(std::string& bytes, std::uint64_t value) {
  put(bytes, value, 2);
}
void put32(std::string& bytes, std::uint64_t value) {
  put(bytes, value, 4);
}

std::uint32_t crc_of(const std::string& bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// The fields that a local header and a directory entry have in common.
void put_common(std::string& bytes, const std::string& name, const std::string& member) {
  put16(bytes, kVersion);
  put16(bytes, kUtf8Names);
  put16(bytes, zip::kStored);
  put16(bytes, kMidnight);
  put16(bytes, kFirstDate);
  put32(bytes, crc_of(member));
  put32(bytes, member.size());
  put32(bytes, member.size());
  put16(bytes, name.size());
  put16(bytes, 0);  // no extra field
}

}  // namespace

void write_stored_zip(const std::filesystem::path& path, const ZipContents& contents) {
  constexpr std::size_t kMost16 = std::numeric_limits<std::uint16_t>::max() - 1;
  constexpr std::size_t kMost32 = std::numeric_limits<std::uint32_t>::max() - 1;
  std::string bytes, directory;
  for (const auto& [name, member] : contents) {
    if (contents.size() > kMost16 || name.size() > kMost16 || bytes.size() + member.size() > kMost32 - (1 << 20)) {
      fail(path.string(), "{}: a zip file without ZIP64 holds at most 4 GiB in 65,534 members", name);
    }
    put32(directory, zip::kEntry);
    put16(directory, kVersion);
    put_common(directory, name, member);
    put16(directory, 0);  // no comment
    put16(directory, 0);  // on disk 0
    put16(directory, 0);  // attributes
    put32(directory, 0);
    put32(directory, bytes.size());
    directory += name;
    put32(bytes, zip::kLocalHeader);
    put_common(bytes, name, member);
    bytes += name;
    bytes += member;
  }
  const std::size_t begin = bytes.size();
  bytes += directory;
  put32(bytes, zip::kEnd);
  put16(bytes, 0);  // this disk, and that of the directory
  put16(bytes, 0);
  put16(bytes, contents.size());
  put16(bytes, contents.size());
  put32(bytes, directory.size());
  put32(bytes, begin);
  put16(bytes, 0);  // no comment
  write_file_atomically(path, bytes);
}

ZipContents read_zip(const std::filesystem::path& path) {
  const ZipArchive archive(path);
  ZipContents contents;
  for (const auto& [name, member] : archive.members()) {
    std::string& bytes = contents[name];
    bytes.resize(member.size);
    archive.read(name, 0, member.size, bytes.data());
  }
  return contents;
}

}  // namespace etc::convert
