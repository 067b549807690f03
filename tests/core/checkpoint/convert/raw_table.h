// Tables built block by block, with correct checksums and otherwise any errors that a test needs.
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/crc32c.h"
#include "etc_core/base/varint.h"
#include "etc_core/checkpoint/convert/tf_bundle/table_format.h"
#include "etc_core/checkpoint/convert/tf_bundle/wire.h"

namespace etc::test {

struct RawBlock {
  std::string contents;
  char compression = convert::kStored;
};

// One entry as stored in a block.
inline std::string raw_entry(std::uint64_t shared, const std::string& rest, const std::string& value) {
  std::string bytes;
  append_varint(bytes, shared);
  append_varint(bytes, rest.size());
  append_varint(bytes, value.size());
  return bytes + rest + value;
}

// Entries followed by the end of a block: one restart at 0.
inline std::string raw_block(const std::string& entries) {
  std::string contents = entries;
  convert::append_fixed32(contents, 0);
  convert::append_fixed32(contents, 1);
  return contents;
}

inline std::string raw_handle(std::uint64_t offset, std::uint64_t size) {
  std::string handle;
  append_varint(handle, offset);
  append_varint(handle, size);
  return handle;
}

inline std::string sealed(const RawBlock& block) {
  std::string bytes = block.contents + block.compression;
  const std::uint32_t crc = masked_crc(crc32c(bytes));
  convert::append_fixed32(bytes, crc);
  return bytes;
}

// A table of these data blocks; `index` replaces the index block's contents when it is not empty.
inline std::string raw_table(const std::vector<RawBlock>& blocks, const std::string& index = "") {
  std::string file, entries;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    entries += raw_entry(0, std::string(1, static_cast<char>(i)), raw_handle(file.size(), blocks[i].contents.size()));
    file += sealed(blocks[i]);
  }
  const std::string contents = index.empty() ? raw_block(entries) : index;
  std::string footer = raw_handle(0, 0) + raw_handle(file.size(), contents.size());
  footer.resize(convert::kFooterBytes - 8, '\0');
  convert::append_fixed64(footer, convert::kTableMagic);
  return file + sealed({contents}) + footer;
}

}  // namespace etc::test
