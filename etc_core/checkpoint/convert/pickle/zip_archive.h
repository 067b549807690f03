// The members of a zip file: its central directory, and bytes of members that are stored or deflated.
//
// Supports only what PyTorch and re-packing tools write: one disk, no encryption, ZIP64 where sizes require it.
//
// Why not libzip (1.7.3, tried with ZIP_CHECKCONS on 10,487 damaged and hostile files under the address and undefined
// behaviour sanitizers): neither crashed or returned wrong bytes without an error, but libzip has no limits of its own.
// It read a 200,000-entry directory into 38 MB (here: refused after 66 kB) and inflated a file of 1 MB to 1,000 MB,
// which is refused here at opening. It also checks a member's CRC-32 only if the whole member is read in order, does
// not let two threads read from one handle, and depends on libbz2 and libcrypto.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "etc_core/checkpoint/input_file.h"

namespace etc::convert {

struct ZipMember {
  std::uint64_t begin = 0;       // of its data in the file
  std::uint64_t compressed = 0;  // bytes there
  std::uint64_t size = 0;        // bytes of the member itself
  std::uint32_t crc = 0;         // CRC-32 of those
  bool deflated = false;
};

class ZipArchive {
 public:
  // Reads the directory. Rules: at most 100,000 members in at most 16 MB of directory; every member lies inside the
  //   file, overlaps no other, is named once and has the same name in the directory and in its local header; the
  //   directory holds nothing else; together the members are at most 16 times as large as the file, plus 16 MB (weights
  //   compress by a tenth; a zip bomb expands more). Throws Error naming file and member.
  explicit ZipArchive(const std::filesystem::path& path);

  const std::map<std::string, ZipMember, std::less<>>& members() const { return members_; }
  const std::filesystem::path& path() const { return file_.path(); }

  // Bytes [begin, begin + size) of a member. The first call for a member checks its CRC-32 over all its bytes. A
  // deflated member is inflated up to the end of the range at every call.
  void read(const std::string& name, std::uint64_t begin, std::uint64_t size, void* out) const;

 private:
  const ZipMember& member(const std::string& name) const;
  void check_crc(const std::string& name, const ZipMember& what) const;
  std::string place(std::string_view name) const;

  InputFile file_;
  std::map<std::string, ZipMember, std::less<>> members_;
  mutable std::mutex checking_;
  mutable std::set<std::string> checked_;
};

}  // namespace etc::convert
