// The two protocol-buffer messages of a bundle's index: the header under the empty key, and one entry per tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "etc_core/checkpoint/tensor_file.h"

namespace etc::convert {

struct BundleHeader {
  std::int64_t shards = 1;
};

struct BundleEntry {
  std::optional<StoredDtype> dtype;  // none: strings, variants, … (no numbers)
  std::vector<std::int64_t> shape;
  std::int64_t shard = 0;
  std::uint64_t offset = 0, size = 0;  // in the shard
  std::uint32_t masked_crc = 0;
};

// These throw Error "<where>: …" when the message is damaged or uses an unsupported feature: numbers in big-endian
// order, an unknown rank, a variable saved in slices (of a partitioned variable).
BundleHeader parse_bundle_header(std::string_view message, const std::string& where);
BundleEntry parse_bundle_entry(std::string_view message, const std::string& where);

std::string bundle_header_message(const BundleHeader& header);
std::string bundle_entry_message(const BundleEntry& entry);  // with a dtype

}  // namespace etc::convert
