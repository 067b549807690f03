#include "etc_core/checkpoint/convert/tf_bundle/bundle_proto.h"

#include <algorithm>
#include <array>

#include "etc_core/base/error.h"
#include "etc_core/checkpoint/convert/tf_bundle/wire.h"

namespace etc::convert {

namespace {

// TensorFlow's DataType numbers.
struct DtypeNumber {
  StoredDtype dtype;
  std::uint64_t number;
};
constexpr std::array<DtypeNumber, 13> kDtypes = {{{StoredDtype::f32, 1},
                                                  {StoredDtype::f64, 2},
                                                  {StoredDtype::i32, 3},
                                                  {StoredDtype::u8, 4},
                                                  {StoredDtype::i16, 5},
                                                  {StoredDtype::i8, 6},
                                                  {StoredDtype::i64, 9},
                                                  {StoredDtype::boolean, 10},
                                                  {StoredDtype::bf16, 14},
                                                  {StoredDtype::u16, 17},
                                                  {StoredDtype::f16, 19},
                                                  {StoredDtype::u32, 22},
                                                  {StoredDtype::u64, 23}}};

constexpr std::size_t kMaxRank = 254;  // TensorFlow's own limit

enum WireType : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// One field of a message: its number and its value in the form its wire type has.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // varint, fixed32, fixed64
  std::string_view bytes;   // length-delimited
  unsigned type = kVarint;

  std::int64_t as_int(const std::string& where) const {
    if (type != kVarint) fail(where, "field {}: expected an integer (the file is damaged)", number);
    return static_cast<std::int64_t>(value);
  }
  std::uint64_t as_size(const std::string& where) const {
    if (as_int(where) < 0) fail(where, "field {}: expected a number >= 0 (the file is damaged)", number);
    return value;
  }
  std::string_view as_message(const std::string& where) const {
    if (type != kBytes) fail(where, "field {}: expected a message (the file is damaged)", number);
    return bytes;
  }
};

template <typename Visit>
void for_each_field(std::string_view message, const std::string& where, Visit&& visit) {
  WireReader reader(message, where);
  while (!reader.empty()) {
    const std::uint64_t tag = reader.varint();
    Field field;
    field.number = tag >> 3;
    field.type = static_cast<unsigned>(tag & 7);
    switch (field.type) {
      case kVarint:
        field.value = reader.varint();
        break;
      case kFixed64:
        field.value = reader.fixed64();
        break;
      case kBytes:
        field.bytes = reader.take(reader.varint());
        break;
      case kFixed32:
        field.value = reader.fixed32();
        break;
      default:
        fail(where, "field {}: unknown wire type {} (the file is damaged)", field.number, field.type);
    }
    visit(field);
  }
}

// TensorShapeProto { repeated Dim dim = 2 { int64 size = 1; string name = 2; }; bool unknown_rank = 3; }
std::vector<std::int64_t> parse_shape(std::string_view message, const std::string& where) {
  std::vector<std::int64_t> shape;
  for_each_field(message, where, [&](const Field& field) {
    if (field.number == 2) {
      std::int64_t size = 0;
      for_each_field(field.as_message(where), where, [&](const Field& of_dim) {
        if (of_dim.number == 1) size = of_dim.as_int(where);
      });
      if (size < 0) fail(where, "shape: expected sizes >= 0, got {}", size);
      if (shape.size() == kMaxRank) fail(where, "shape: expected at most {} dimensions", kMaxRank);
      shape.push_back(size);
    } else if (field.number == 3 && field.as_int(where) != 0) {
      fail(where, "shape: expected a known rank");
    }
  });
  return shape;
}

void append_int(std::string& out, unsigned number, std::uint64_t value) {
  if (value == 0) return;  // proto3 leaves defaults out
  append_varint(out, number << 3 | kVarint);
  append_varint(out, value);
}

void append_message(std::string& out, unsigned number, const std::string& message) {
  append_varint(out, number << 3 | kBytes);
  append_varint(out, message.size());
  out += message;
}

}  // namespace

// BundleHeaderProto { int32 num_shards = 1; Endianness endianness = 2; VersionDef version = 3; }
BundleHeader parse_bundle_header(std::string_view message, const std::string& where) {
  BundleHeader header;
  header.shards = 0;
  for_each_field(message, where, [&](const Field& field) {
    if (field.number == 1) header.shards = field.as_int(where);
    if (field.number == 2 && field.as_int(where) != 0) {
      fail(where, "the checkpoint was written on a big-endian machine: expected little-endian numbers");
    }
  });
  constexpr std::int64_t kMostShards = 99'999;  // five digits in the file names
  if (header.shards < 1 || header.shards > kMostShards) {
    fail(where, "shards: expected 1 … {}, got {}", kMostShards, header.shards);
  }
  return header;
}

// BundleEntryProto { DataType dtype = 1; TensorShapeProto shape = 2; int32 shard_id = 3; int64 offset = 4;
//                    int64 size = 5; fixed32 crc32c = 6; repeated TensorSliceProto slices = 7; }
BundleEntry parse_bundle_entry(std::string_view message, const std::string& where) {
  BundleEntry entry;
  for_each_field(message, where, [&](const Field& field) {
    switch (field.number) {
      case 1: {
        const std::uint64_t number = field.as_size(where);
        const auto known =
            std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeNumber& one) { return one.number == number; });
        entry.dtype = known == kDtypes.end() ? std::nullopt : std::optional(known->dtype);
        break;
      }
      case 2:
        entry.shape = parse_shape(field.as_message(where), where);
        break;
      case 3:
        entry.shard = field.as_int(where);
        break;
      case 4:
        entry.offset = field.as_size(where);
        break;
      case 5:
        entry.size = field.as_size(where);
        break;
      case 6:
        if (field.type != kFixed32) fail(where, "field 6: expected a checksum (the file is damaged)");
        entry.masked_crc = static_cast<std::uint32_t>(field.value);
        break;
      case 7:
        fail(where, "saved in slices (of a partitioned variable): not supported; save it as one variable");
      default:
        break;
    }
  });
  return entry;
}

std::string bundle_header_message(const BundleHeader& header) {
  std::string version, message;
  append_int(version, 1, 1);  // VersionDef.producer
  append_int(message, 1, static_cast<std::uint64_t>(header.shards));
  append_message(message, 3, version);
  return message;
}

std::string bundle_entry_message(const BundleEntry& entry) {
  const auto known =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeNumber& one) { return one.dtype == entry.dtype; });
  std::string shape, message;
  for (const std::int64_t size : entry.shape) {
    std::string dim;
    append_int(dim, 1, static_cast<std::uint64_t>(size));
    append_message(shape, 2, dim);
  }
  append_int(message, 1, known->number);
  append_message(message, 2, shape);
  append_int(message, 3, static_cast<std::uint64_t>(entry.shard));
  append_int(message, 4, entry.offset);
  append_int(message, 5, entry.size);
  append_varint(message, 6 << 3 | kFixed32);
  append_fixed32(message, entry.masked_crc);
  return message;
}

}  // namespace etc::convert
