#include <algorithm>

#include "etc_core/base/crc32c.h"
#include "etc_core/base/error.h"
#include "etc_core/checkpoint/convert/tf_bundle/table.h"
#include "etc_core/checkpoint/convert/tf_bundle/table_format.h"
#include "etc_core/checkpoint/convert/tf_bundle/wire.h"

namespace etc::convert {

namespace {

// A short key that is not below `key` and below `next`: the common prefix and, if there is room, one byte more.
std::string separator(std::string key, std::string_view next) {
  std::size_t at = 0;
  while (at < key.size() && at < next.size() && key[at] == next[at]) ++at;
  if (at < key.size() && at < next.size()) {
    const auto low = static_cast<unsigned char>(key[at]), high = static_cast<unsigned char>(next[at]);
    if (low < 255 && low + 1 < high) {
      key.resize(at + 1);
      key[at] = static_cast<char>(low + 1);
    }
  }
  return key;
}

// A short key that is not below `key`, for the last block of the table.
std::string successor(std::string key) {
  for (std::size_t at = 0; at < key.size(); ++at) {
    if (static_cast<unsigned char>(key[at]) == 255) continue;
    key[at] = static_cast<char>(static_cast<unsigned char>(key[at]) + 1);
    key.resize(at + 1);
    break;
  }
  return key;
}

}  // namespace

void TableWriter::Block::add(std::string_view key, std::string_view value) {
  std::size_t shared = 0;
  if (since_restart < restart_interval) {
    const std::size_t most = std::min(last_key.size(), key.size());
    while (shared < most && last_key[shared] == key[shared]) ++shared;
  } else {
    append_fixed32(restarts, static_cast<std::uint32_t>(entries.size()));
    ++restart_count;
    since_restart = 0;
  }
  append_varint(entries, shared);
  append_varint(entries, key.size() - shared);
  append_varint(entries, value.size());
  entries.append(key.substr(shared)).append(value);
  last_key = key;
  ++since_restart;
}

std::string TableWriter::Block::finish() {
  std::string contents = entries + restarts;
  append_fixed32(contents, restart_count);
  *this = Block(restart_interval);
  return contents;
}

std::string TableWriter::write_block(std::string contents) {
  std::string handle;
  append_varint(handle, file_.size());
  append_varint(handle, contents.size());
  contents += kStored;
  append_fixed32(contents, masked_crc(crc32c(0, contents.data(), contents.size())));
  file_ += contents;
  return handle;
}

void TableWriter::close_block() {
  if (data_.entries.empty()) return;
  closed_handle_ = write_block(data_.finish());
}

void TableWriter::index_closed_block(std::string key) {
  if (closed_handle_.empty()) return;
  index_.add(key, closed_handle_);
  closed_handle_.clear();
}

void TableWriter::add(std::string_view key, std::string_view value) {
  if (key.size() > kMaxTableKeyBytes) fail("table", "key {}: expected at most {} bytes", key, kMaxTableKeyBytes);
  if ((!file_.empty() || !data_.entries.empty()) && key <= last_key_) {
    fail("table", "{} comes after {}: expected ascending keys", key, last_key_);
  }
  index_closed_block(separator(last_key_, key));
  data_.add(key, value);
  last_key_ = key;
  if (data_.entries.size() + data_.restarts.size() + 4 >= block_bytes_) close_block();
}

std::string TableWriter::finish() {
  close_block();
  index_closed_block(successor(last_key_));
  std::string footer = write_block(Block(1).finish());  // the meta index, empty
  footer += write_block(index_.finish());
  footer.resize(kFooterBytes - 8, '\0');
  append_fixed64(footer, kTableMagic);
  return std::move(file_) + footer;
}

}  // namespace etc::convert
