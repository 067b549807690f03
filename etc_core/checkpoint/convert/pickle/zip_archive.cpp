#include "etc_core/checkpoint/convert/pickle/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/checkpoint/convert/pickle/zip_format.h"

namespace etc::convert {

namespace {

constexpr std::uint64_t kMaxDirectoryBytes = 16 << 20;
constexpr std::uint64_t kMaxMembers = 100'000;
constexpr std::uint64_t kMaxExpansion = 16, kExpansionSlack = 16 << 20;
constexpr std::uint64_t kBlockBytes = 256 << 10;

// Sizes of the fixed parts of the format's records, and their signatures.
constexpr std::uint64_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kEntryBytes = 46, kLocalBytes = 30;
constexpr std::uint32_t kEnd64 = 0x06064b50, kLocator = 0x07064b50;
constexpr std::uint16_t kEncrypted = 1;
constexpr std::uint16_t kZip64Extra = 1;

template <typename T>
T number_at(std::string_view bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
std::uint16_t word_at(std::string_view bytes, std::uint64_t offset) {
  return number_at<std::uint16_t>(bytes, offset);
}
std::uint32_t long_at(std::string_view bytes, std::uint64_t offset) {
  return number_at<std::uint32_t>(bytes, offset);
}
std::uint64_t quad_at(std::string_view bytes, std::uint64_t offset) {
  return number_at<std::uint64_t>(bytes, offset);
}

struct Directory {
  std::uint64_t offset, size, count;
};

// Finds the central directory through the record at the file's end.
Directory find_directory(const InputFile& file) {
  const std::string where = file.path().string();
  const std::uint64_t tail_size = std::min<std::uint64_t>(file.size(), kEndBytes + 65535);
  const std::string tail = file.read_up_to(file.size() - tail_size, tail_size);
  if (tail.size() < kEndBytes) fail(where, "not a zip file, or cut off");
  for (std::uint64_t at = tail.size() - kEndBytes;; --at) {
    // The comment must reach exactly to the end of the file, else the signature belongs to other data.
    if (long_at(tail, at) == zip::kEnd && at + kEndBytes + word_at(tail, at + 20) == tail.size()) {
      Directory directory{long_at(tail, at + 16), long_at(tail, at + 12), word_at(tail, at + 10)};
      const bool has_locator = at >= kLocatorBytes && long_at(tail, at - kLocatorBytes) == kLocator;
      if (has_locator) {
        const std::string end = file.read_up_to(quad_at(tail, at - kLocatorBytes + 8), kEnd64Bytes);
        if (end.size() < kEnd64Bytes || long_at(end, 0) != kEnd64) fail(where, "the ZIP64 record is damaged");
        directory = {quad_at(end, 48), quad_at(end, 40), quad_at(end, 32)};
      }
      return directory;
    }
    if (at == 0) fail(where, "not a zip file, or cut off");
  }
}

// Reads sizes and offset of a directory entry from its ZIP64 field if the 32-bit fields hold their maximum.
void read_zip64(std::string_view extra, std::uint64_t& size, std::uint64_t& compressed, std::uint64_t& offset,
                const std::string& where) {
  while (extra.size() >= 4) {
    const std::uint16_t id = word_at(extra, 0), length = word_at(extra, 2);
    extra.remove_prefix(4);
    if (length > extra.size()) break;
    if (id == kZip64Extra) {
      std::string_view field = extra.substr(0, length);
      for (std::uint64_t* value : {&size, &compressed, &offset}) {
        if (*value != 0xffffffffu) continue;
        if (field.size() < 8) fail(where, "the ZIP64 field is too short");
        *value = quad_at(field, 0);
        field.remove_prefix(8);
      }
      return;
    }
    extra.remove_prefix(length);
  }
}

// Calls use(bytes, size) for the member's own bytes in order, until it returns false or they end.
void for_each_block(const InputFile& file, const ZipMember& member, const std::string& where,
                    const std::function<bool(const char*, std::uint64_t)>& use) {
  std::string stored(std::min(kBlockBytes, member.compressed), '\0');
  if (!member.deflated) {
    for (std::uint64_t done = 0; done < member.size;) {
      const std::uint64_t count = std::min(kBlockBytes, member.size - done);
      file.read(member.begin + done, count, stored.data());
      if (!use(stored.data(), count)) return;
      done += count;
    }
    return;
  }
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail(where, "cannot start to inflate");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } end{&stream};
  std::string inflated(kBlockBytes, '\0');
  std::uint64_t read = 0, written = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0 && read < member.compressed) {
      const std::uint64_t count = std::min(kBlockBytes, member.compressed - read);
      file.read(member.begin + read, count, stored.data());
      read += count;
      stream.next_in = reinterpret_cast<Bytef*>(stored.data());
      stream.avail_in = static_cast<uInt>(count);
    }
    stream.next_out = reinterpret_cast<Bytef*>(inflated.data());
    stream.avail_out = static_cast<uInt>(inflated.size());
    status = inflate(&stream, Z_NO_FLUSH);
    const std::uint64_t count = inflated.size() - stream.avail_out;
    if ((status != Z_OK && status != Z_STREAM_END) || (count == 0 && status == Z_OK && read == member.compressed)) {
      fail(where, "not valid deflated data");
    }
    written += count;
    if (written > member.size) fail(where, "inflates to more than the {} bytes it is said to have", member.size);
    if (count > 0 && !use(inflated.data(), count)) return;
  }
  if (written != member.size) fail(where, "inflates to {} bytes: expected {}", written, member.size);
}

// One entry of the directory, and the position of the member's local header in the file.
struct Entry {
  std::string name;
  ZipMember member;
  std::uint64_t header = 0;
};

// Reads entry number `index` from the front of the remaining directory; ZipMember::begin is not set yet.
Entry take_entry(std::string_view& rest, std::uint64_t index, const std::string& where) {
  const auto damaged = [&] { fail(where, "the directory is damaged at entry {}", index); };
  if (rest.size() < kEntryBytes || long_at(rest, 0) != zip::kEntry) damaged();
  const std::uint16_t flags = word_at(rest, 8), method = word_at(rest, 10);
  const std::uint64_t name_size = word_at(rest, 28), extra_size = word_at(rest, 30), comment_size = word_at(rest, 32);
  Entry entry;
  entry.member.crc = long_at(rest, 16);
  entry.member.compressed = long_at(rest, 20);
  entry.member.size = long_at(rest, 24);
  entry.header = long_at(rest, 42);
  rest.remove_prefix(kEntryBytes);
  if (name_size + extra_size + comment_size > rest.size()) damaged();
  entry.name = rest.substr(0, name_size);
  const std::string here = fmt::format("{}: {}", where, entry.name);
  read_zip64(rest.substr(name_size, extra_size), entry.member.size, entry.member.compressed, entry.header, here);
  rest.remove_prefix(name_size + extra_size + comment_size);

  if (flags & kEncrypted) fail(here, "is encrypted");
  if (method != zip::kStored && method != zip::kDeflated)
    fail(here, "compression {}: expected stored or deflated", method);
  entry.member.deflated = method == zip::kDeflated;
  if (!entry.member.deflated && entry.member.size != entry.member.compressed) {
    fail(here, "is stored with {} bytes, but said to have {}", entry.member.compressed, entry.member.size);
  }
  return entry;
}

// The position of the member's bytes, from its local header, which must have the same name as the directory entry.
std::uint64_t data_begin(const InputFile& file, const Entry& entry, const std::string& here) {
  const std::string local = file.read_up_to(entry.header, kLocalBytes + entry.name.size());
  if (local.size() < kLocalBytes || long_at(local, 0) != zip::kLocalHeader) fail(here, "no member at {}", entry.header);
  if (word_at(local, 26) != entry.name.size() || local.substr(kLocalBytes) != entry.name) {
    fail(here, "has another name before its bytes than in the directory");
  }
  const std::uint64_t begin = entry.header + kLocalBytes + word_at(local, 26) + word_at(local, 28);
  if (begin > file.size() || entry.member.compressed > file.size() - begin) {
    fail(here, "lies outside the file (cut off?)");
  }
  return begin;
}

// The range of a member in the file, from its local header on.
struct Extent {
  std::uint64_t begin, end;
  const std::string* name;
};

// The names of two overlapping members; null if there are none.
std::pair<const std::string*, const std::string*> overlapping(std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) return {extents[i - 1].name, extents[i].name};
  }
  return {nullptr, nullptr};
}

}  // namespace

ZipArchive::ZipArchive(const std::filesystem::path& path) : file_(path) {
  const std::string where = path.string();
  const Directory place_of = find_directory(file_);
  if (place_of.count > kMaxMembers || place_of.size > kMaxDirectoryBytes) {
    fail(where, "expected at most {} members, got {} in {} bytes", kMaxMembers, place_of.count, place_of.size);
  }
  std::string bytes = file_.read_up_to(place_of.offset, place_of.size);
  if (bytes.size() != place_of.size) fail(where, "the directory lies outside the file (cut off?)");

  std::vector<Extent> extents;
  std::uint64_t total = 0;
  std::string_view rest = bytes;
  for (std::uint64_t i = 0; i < place_of.count; ++i) {
    Entry entry = take_entry(rest, i, where);
    const std::string here = place(entry.name);
    entry.member.begin = data_begin(file_, entry, here);
    if (__builtin_add_overflow(total, entry.member.size, &total) ||
        total > kMaxExpansion * file_.size() + kExpansionSlack) {
      fail(here, "the members are more than {} times as large as the file", kMaxExpansion);
    }
    const auto [added, fresh] = members_.emplace(entry.name, entry.member);
    if (!fresh) fail(here, "comes twice");
    extents.push_back({entry.header, entry.member.begin + entry.member.compressed, &added->first});
  }
  if (!rest.empty()) fail(where, "the directory has {} bytes behind its {} entries", rest.size(), place_of.count);
  if (const auto [first, second] = overlapping(std::move(extents)); second != nullptr) {
    fail(place(*second), "overlaps {}", *first);
  }
}

std::string ZipArchive::place(std::string_view name) const {
  return fmt::format("{}: {}", file_.path().string(), name);
}

const ZipMember& ZipArchive::member(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) fail(file_.path().string(), "no member {}", name);
  return found->second;
}

void ZipArchive::check_crc(const std::string& name, const ZipMember& what) const {
  {
    const std::lock_guard lock(checking_);
    if (checked_.count(name) != 0) return;
  }
  uLong crc = crc32(0, nullptr, 0);
  for_each_block(file_, what, place(name), [&](const char* bytes, std::uint64_t size) {
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes), static_cast<uInt>(size));
    return true;
  });
  if (crc != what.crc) {
    fail(place(name), "checksum: expected {:08x}, got {:08x} (the file is damaged)", what.crc, crc);
  }
  const std::lock_guard lock(checking_);
  checked_.insert(name);
}

void ZipArchive::read(const std::string& name, std::uint64_t begin, std::uint64_t size, void* out) const {
  const ZipMember& what = member(name);
  if (begin > what.size || size > what.size - begin) {
    fail(place(name), "expected {} bytes at {}, got {}", size, begin, what.size);
  }
  check_crc(name, what);
  if (size == 0) return;
  if (!what.deflated) return file_.read(what.begin + begin, size, out);
  std::uint64_t at = 0;
  const std::uint64_t end = begin + size;
  for_each_block(file_, what, place(name), [&](const char* bytes, std::uint64_t count) {
    const std::uint64_t from = std::max(at, begin), to = std::min(at + count, end);
    if (from < to) std::memcpy(static_cast<char*>(out) + (from - begin), bytes + (from - at), to - from);
    at += count;
    return at < end;
  });
}

}  // namespace etc::convert
