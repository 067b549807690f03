#include <snappy.h>

#include "etc_core/base/crc32c.h"
#include "etc_core/base/error.h"
#include "etc_core/checkpoint/convert/tf_bundle/table.h"
#include "etc_core/checkpoint/convert/tf_bundle/table_format.h"
#include "etc_core/checkpoint/convert/tf_bundle/wire.h"

namespace etc::convert {

namespace {

// Three bytes of Snappy expand to at most 64 bytes.
constexpr std::uint64_t kMaxExpansion = 22;

struct Handle {
  std::uint64_t offset, size;
};

Handle read_handle(WireReader& from) {
  const std::uint64_t offset = from.varint();
  return {offset, from.varint()};
}

// The contents of a block after all checks; `scratch` holds them if they had to be decompressed.
std::string_view block_contents(std::string_view blocks, Handle handle, std::string& scratch,
                                const std::string& where) {
  if (handle.offset > blocks.size() || handle.size > blocks.size() - handle.offset ||
      blocks.size() - handle.offset - handle.size < kTrailerBytes) {
    fail(where, "a block of {} bytes at {} lies outside the file", handle.size, handle.offset);
  }
  const std::string_view stored = blocks.substr(handle.offset, handle.size + 1);  // with the compression byte
  const std::string place = fmt::format("{}: block at {}", where, handle.offset);
  WireReader trailer(blocks.substr(handle.offset + handle.size + 1, 4), place);
  const std::uint32_t expected = trailer.fixed32(), got = masked_crc(crc32c(0, stored.data(), stored.size()));
  if (expected != got) {
    fail(place, "checksum: expected {:08x}, got {:08x} (the file is damaged)", expected, got);
  }
  const std::string_view contents = stored.substr(0, handle.size);
  switch (stored.back()) {
    case kStored:
      return contents;
    case kSnappy: {
      std::size_t size = 0;
      if (!snappy::GetUncompressedLength(contents.data(), contents.size(), &size) ||
          size > kMaxExpansion * contents.size() + 64) {
        fail(place, "not valid Snappy data");
      }
      scratch.resize(size);
      if (!snappy::RawUncompress(contents.data(), contents.size(), scratch.data())) {
        fail(place, "not valid Snappy data");
      }
      return scratch;
    }
    default:
      fail(place, "compression {}: expected 0 (stored) or 1 (Snappy)", static_cast<int>(stored.back()));
  }
}

// Calls visit(key, value) for the entries of a block's contents.
template <typename Visit>
void for_each_block_entry(std::string_view contents, const std::string& where, Visit&& visit) {
  if (contents.size() < 4) fail(where, "a block of {} bytes has no restarts", contents.size());
  WireReader last_word(contents.substr(contents.size() - 4), where);
  const std::uint64_t restarts = last_word.fixed32();
  if (restarts > (contents.size() - 4) / 4)
    fail(where, "a block of {} bytes has {} restarts", contents.size(), restarts);
  WireReader entries(contents.substr(0, contents.size() - 4 - 4 * restarts), where);
  std::string key;
  while (!entries.empty()) {
    const std::uint64_t shared = entries.varint(), rest = entries.varint(), value_size = entries.varint();
    if (shared > key.size() || rest > kMaxTableKeyBytes || shared + rest > kMaxTableKeyBytes) {
      fail(where, "a key shares {} of {} bytes and adds {}: expected at most {} in all", shared, key.size(), rest,
           kMaxTableKeyBytes);
    }
    key.resize(shared);
    key.append(entries.take(rest));
    visit(std::string_view(key), entries.take(value_size));
  }
}

}  // namespace

void for_each_table_entry(std::string_view file, const std::string& where,
                          const std::function<void(std::string_view, std::string_view)>& visit) {
  if (file.size() < kFooterBytes) {
    fail(where, "expected a table of at least {} bytes, got {} (cut off?)", kFooterBytes, file.size());
  }
  const std::string_view blocks = file.substr(0, file.size() - kFooterBytes);
  WireReader footer(file.substr(blocks.size()), where);
  WireReader handles(footer.take(kFooterBytes - 8), where);
  if (footer.fixed64() != kTableMagic) fail(where, "not the index of a TensorFlow checkpoint, or cut off");
  read_handle(handles);  // of the meta index, which TensorFlow leaves empty
  const Handle index = read_handle(handles);

  std::string index_scratch, data_scratch, last_key;
  bool first = true;
  std::uint64_t end_of_last = 0;
  for_each_block_entry(
      block_contents(blocks, index, index_scratch, where), where, [&](std::string_view, std::string_view handle) {
        WireReader bytes(handle, where);
        const Handle data = read_handle(bytes);
        // Each block only once, else a small index could refer to the same block a million times.
        if (data.offset < end_of_last) fail(where, "blocks out of order at {}", data.offset);
        for_each_block_entry(block_contents(blocks, data, data_scratch, where), where,
                             [&](std::string_view key, std::string_view value) {
                               if (!first && key <= last_key) {
                                 fail(where, "{} comes after {}: expected ascending names, each once", key, last_key);
                               }
                               first = false;
                               last_key = key;
                               visit(key, value);
                             });
        end_of_last = data.offset + data.size + kTrailerBytes;
      });
}

}  // namespace etc::convert
