// Sorted tables of keys and values in LevelDB's format, which a bundle's .index file uses:
//
//   data blocks | meta index block | index block | footer
//
// A block consists of entries (length of the prefix shared with the previous key, length of the rest, length of the
// value, rest, value), the offsets of entries without a shared prefix (restarts), and the number of restarts. It is
// followed by one byte for the compression and the masked CRC-32C. The index block holds, for each data block, its
// position and its last key or a key between that and the next block's first.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace etc::convert {

inline constexpr std::size_t kMaxTableKeyBytes = 1024;

// Calls visit(key, value) for every entry of the table in `file`, in order. The views live until visit returns.
// Rules: every checksum and every range is checked; keys must ascend strictly, so no key occurs twice; a block may be
//   stored or compressed with Snappy. Throws Error naming `where` and what is damaged, possibly after calls of visit.
// Cost: linear in the file; memory: one decompressed block, at most 22 times its size in the file.
void for_each_table_entry(std::string_view file, const std::string& where,
                          const std::function<void(std::string_view key, std::string_view value)>& visit);

// Builds a table. Equal entries give equal bytes, identical to those of TensorFlow's own writer for bundles.
class TableWriter {
 public:
  explicit TableWriter(std::size_t block_bytes = 256 << 10) : block_bytes_(block_bytes) {}

  void add(std::string_view key, std::string_view value);  // keys must ascend strictly: else Error
  std::string finish();                                    // the whole file

 private:
  struct Block {
    explicit Block(std::uint32_t interval) : restart_interval(interval) {}
    std::uint32_t restart_interval;
    std::string entries, last_key;
    std::string restarts = std::string(4, '\0');
    std::uint32_t restart_count = 1, since_restart = 0;
    void add(std::string_view key, std::string_view value);
    std::string finish();
  };
  std::string write_block(std::string contents);  // returns its handle
  void close_block();
  void index_closed_block(std::string key);

  std::size_t block_bytes_;
  std::string file_, last_key_;
  Block data_{16}, index_{1};  // TensorFlow's intervals
  std::string closed_handle_;  // handle of a finished block that is not in the index yet; empty: none
};

}  // namespace etc::convert
