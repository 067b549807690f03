#include "etc_core/checkpoint/tensor_file.h"

#include <algorithm>
#include <array>
#include <bit>

#include "etc_core/base/bf16.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/half.h"
#include "etc_core/base/integers.h"
#include "etc_core/base/json.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/shape.h"

namespace etc {

static_assert(std::endian::native == std::endian::little, "tensor files are read and written as they lie in memory");

namespace {

// Enough for a hundred thousand tensors. The format allows 100 MB, but parsing a malicious header can take twenty times
// its size in memory.
constexpr std::uint64_t kMaxHeaderBytes = 16 << 20;
constexpr std::uint64_t kLine = 64;               // the alignment that Tensor::adopt() requires
constexpr std::uint64_t kLeastMapped = 64 << 10;  // bytes: copying fewer costs less than a mapping
constexpr const char* kMetadataKey = "__metadata__";

struct DtypeInfo {
  const char* name;
  std::uint64_t bytes;
};
constexpr std::array<DtypeInfo, 13> kDtypes = {{{"F64", 8},
                                                {"F32", 4},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"I64", 8},
                                                {"I32", 4},
                                                {"I16", 2},
                                                {"I8", 1},
                                                {"U64", 8},
                                                {"U32", 4},
                                                {"U16", 2},
                                                {"U8", 1},
                                                {"BOOL", 1}}};

const DtypeInfo& info(StoredDtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

// A whole number >= 0 that fits into int64.
bool is_count(const Json& json) {
  return json.is_number_unsigned() && json.get<std::uint64_t>() < std::uint64_t{1} << 63;
}

TensorEntry parse_entry(const std::string& where, const Json& json) {
  if (!json.is_object()) fail(where, "expected an object with dtype, shape and data_offsets, got {}", json.type_name());
  for (const auto& [key, value] : json.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") fail(where, "unknown key {}", key);
  }
  TensorEntry entry;
  const auto dtype = json.find("dtype");
  if (dtype == json.end() || !dtype->is_string()) fail(where, "dtype: expected a string");
  const auto known =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeInfo& one) { return *dtype == one.name; });
  if (known == kDtypes.end()) fail(where, "dtype: expected a known type such as F32, got {}", json_line(*dtype));
  entry.dtype = static_cast<StoredDtype>(known - kDtypes.begin());

  const auto shape = json.find("shape");
  if (shape == json.end() || !shape->is_array()) fail(where, "shape: expected a list of sizes");
  std::uint64_t bytes = known->bytes;
  for (const Json& size : *shape) {
    if (!is_count(size)) fail(where, "shape: expected sizes >= 0, got {}", json_line(*shape));
    entry.shape.push_back(size.get<std::int64_t>());
    // A later 0 would hide the overflow of the sizes before it, so check every product, with 1 instead of each 0.
    if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(1, size.get<std::uint64_t>()), &bytes)) {
      fail(where, "shape: {} is too large", json_line(*shape));
    }
  }
  const bool empty = std::find(entry.shape.begin(), entry.shape.end(), 0) != entry.shape.end();

  const auto offsets = json.find("data_offsets");
  if (offsets == json.end() || !offsets->is_array() || offsets->size() != 2 || !is_count((*offsets)[0]) ||
      !is_count((*offsets)[1])) {
    fail(where, "data_offsets: expected two offsets >= 0");
  }
  entry.begin = (*offsets)[0].get<std::uint64_t>();
  entry.end = (*offsets)[1].get<std::uint64_t>();
  if (entry.end < entry.begin || entry.end - entry.begin != (empty ? 0 : bytes)) {
    fail(where, "data_offsets: expected {} bytes for {} {}, got [{}, {}]", empty ? 0 : bytes, known->name,
         shape_text(entry.shape), entry.begin, entry.end);
  }
  return entry;
}

// Throws Error unless the tensors fill the file's `bytes` bytes of data without gaps or overlaps.
template <typename Entries>
void check_extents(const std::string& where, const Entries& entries, std::uint64_t bytes) {
  std::vector<std::pair<const TensorEntry*, const std::string*>> in_order;
  for (const auto& [name, entry] : entries) in_order.emplace_back(&entry, &name);
  std::sort(in_order.begin(), in_order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  std::uint64_t expected = 0;
  for (const auto& [entry, name] : in_order) {
    if (entry->begin != expected) {
      fail(where, "{}: data_offsets: expected to begin at {}, got {} (tensors overlap or leave a hole)", *name,
           expected, entry->begin);
    }
    expected = entry->end;
  }
  if (expected != bytes) {
    fail(where, "expected {} bytes of tensors, got {} (the file is cut off or too long)", expected, bytes);
  }
}

}  // namespace

const char* stored_dtype_name(StoredDtype dtype) {
  return info(dtype).name;
}

std::uint64_t stored_dtype_bytes(StoredDtype dtype) {
  return info(dtype).bytes;
}

bool is_readable_float(StoredDtype dtype) {
  return dtype == StoredDtype::f32 || dtype == StoredDtype::f16 || dtype == StoredDtype::bf16;
}

void widen_floats(StoredDtype dtype, const std::uint16_t* stored, std::int64_t count, float* out) {
  const bool half = dtype == StoredDtype::f16;
  for (std::int64_t i = 0; i < count; ++i) out[i] = half ? float_from_half(stored[i]) : float_from_bf16(stored[i]);
}

std::int64_t TensorEntry::size() const {
  return static_cast<std::int64_t>((end - begin) / info(dtype).bytes);
}

TensorFileReader::TensorFileReader(const std::filesystem::path& path) : file_(path) {
  const std::string where = path.string();
  const std::uint64_t file_bytes = file_.size();
  if (file_bytes < 8) fail(where, "expected a safetensors file of at least 8 bytes, got {}", file_bytes);
  std::uint64_t header_bytes = 0;
  file_.read(0, 8, &header_bytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > file_bytes - 8) {
    fail(where, "header: expected at most {} bytes, got {} (not a safetensors file, or cut off)",
         std::min(kMaxHeaderBytes, file_bytes - 8), header_bytes);
  }
  std::string text(header_bytes, '\0');
  file_.read(8, header_bytes, text.data());
  data_start_ = 8 + header_bytes;
  if (text.empty() || text.front() != '{') fail(where, "header: expected a JSON object");
  const Json header = parse_json(text, where + ": header");
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadataKey) {
      if (!json.is_object()) fail(where, "header: {}: expected an object of strings", name);
      for (const auto& [key, value] : json.items()) {
        if (!value.is_string()) fail(where, "header: {}: {}: expected a string", name, key);
        metadata_[key] = value.get<std::string>();
      }
    } else {
      entries_[name] = parse_entry(where + ": " + name, json);
    }
  }
  check_extents(where, entries_, file_bytes - data_start_);
}

BytesRead of_floats(const NumbersRead& seen) {
  if (!seen) return {};
  return [&seen](const char* bytes, std::uint64_t count) {
    seen(reinterpret_cast<const float*>(bytes), static_cast<std::int64_t>(count / sizeof(float)));
  };
}

const TensorEntry& TensorFileReader::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) fail(path().string(), "no tensor {}", name);
  return found->second;
}

void TensorFileReader::read_floats(std::string_view name, float* out, const NumbersRead& seen) const {
  const TensorEntry& what = entry(name);
  if (what.dtype == StoredDtype::f32) return read_raw(name, out, of_floats(seen));
  if (!is_readable_float(what.dtype)) {
    fail(path().string(), "{}: expected F32, F16 or BF16, got {}", name, stored_dtype_name(what.dtype));
  }
  std::vector<std::uint16_t> block(1 << 16);
  const std::int64_t size = what.size();
  for (std::int64_t first = 0; first < size; first += static_cast<std::int64_t>(block.size())) {
    const auto count = std::min<std::uint64_t>(block.size(), static_cast<std::uint64_t>(size - first));
    file_.read(data_start_ + what.begin + 2 * static_cast<std::uint64_t>(first), 2 * count, block.data());
    widen_floats(what.dtype, block.data(), static_cast<std::int64_t>(count), out + first);
    if (seen) seen(out + first, static_cast<std::int64_t>(count));
  }
}

void TensorFileReader::read_raw(std::string_view name, void* out, const BytesRead& seen) const {
  const TensorEntry& what = entry(name);
  const std::uint64_t block = seen ? kReadBlock : what.end - what.begin;
  auto* to = static_cast<char*>(out);
  for (std::uint64_t at = what.begin; at < what.end;) {
    const std::uint64_t count = std::min(block, what.end - at);
    file_.read(data_start_ + at, count, to);
    if (seen) seen(to, count);
    at += count;
    to += count;
  }
}

Tensor TensorFileReader::read_tensor(std::string_view name, Purpose purpose) const {
  Tensor tensor = Tensor::empty(entry(name).shape, purpose);
  read_floats(name, tensor.data());
  return tensor;
}

bool TensorFileReader::is_mappable(std::string_view name) const {
  const TensorEntry& what = entry(name);
  return what.dtype == StoredDtype::f32 && (data_start_ + what.begin) % kLine == 0 &&
         what.end - what.begin >= kLeastMapped;
}

Tensor TensorFileReader::map_tensor(std::string_view name, Purpose purpose) const {
  const TensorEntry& what = entry(name);
  if (!is_mappable(name)) fail(path().string(), "{}: cannot be mapped (read it instead)", name);
  const std::shared_ptr<const std::byte> pages = file_.map(data_start_ + what.begin, what.end - what.begin);
  if (pages == nullptr) return {};
  const auto bytes = static_cast<std::int64_t>(round_up(what.end - what.begin, kLine));
  memory_ledger::charge(purpose, bytes);
  // A Tensor has no read-only form; the mapping itself is write-protected.
  auto* const numbers = const_cast<float*>(reinterpret_cast<const float*>(pages.get()));
  const auto give_back = [pages, ledger = memory_ledger::current(), purpose, bytes](float*) {
    memory_ledger::give_back(ledger, purpose, bytes);
  };
  return Tensor::adopt(std::shared_ptr<float>(numbers, give_back), what.shape, purpose);
}

namespace {

template <typename Wide, typename Narrow, typename Read>
std::vector<Wide> read_integers(const TensorEntry& what, StoredDtype wide, StoredDtype narrow, const std::string& where,
                                Read&& read) {
  std::vector<Wide> values(static_cast<std::size_t>(what.size()));
  if (what.dtype == wide) {
    read(values.data());
  } else if (what.dtype == narrow) {
    std::vector<Narrow> stored(values.size());
    read(stored.data());
    std::copy(stored.begin(), stored.end(), values.begin());
  } else {
    fail(where, "expected {} or {}, got {}", stored_dtype_name(wide), stored_dtype_name(narrow),
         stored_dtype_name(what.dtype));
  }
  return values;
}

}  // namespace

std::vector<std::int64_t> TensorFileReader::read_i64(std::string_view name) const {
  const TensorEntry& what = entry(name);
  return read_integers<std::int64_t, std::int32_t>(
      what, StoredDtype::i64, StoredDtype::i32, path().string() + ": " + std::string(name),
      [&](void* out) { file_.read(data_start_ + what.begin, what.end - what.begin, out); });
}

std::vector<std::uint64_t> TensorFileReader::read_u64(std::string_view name) const {
  const TensorEntry& what = entry(name);
  return read_integers<std::uint64_t, std::uint32_t>(
      what, StoredDtype::u64, StoredDtype::u32, path().string() + ": " + std::string(name),
      [&](void* out) { file_.read(data_start_ + what.begin, what.end - what.begin, out); });
}

void TensorFileWriter::add_item(Item item) {
  if (item.name == kMetadataKey || !names_.insert(item.name).second)
    fail("tensor file", "{} is added twice or reserved", item.name);
  items_.push_back(std::move(item));
}

void TensorFileWriter::add(const std::string& name, const Tensor& values) {
  // The tensor is a handle: holding it keeps the numbers alive without a copy, unless they are on another device.
  const auto owner = std::make_shared<Tensor>(values.to(Device::cpu));
  add_item(
      {name, StoredDtype::f32, values.shape(), owner->data(), static_cast<std::uint64_t>(values.size()) * 4, owner});
}

void TensorFileWriter::add(const std::string& name, std::vector<std::int64_t> shape, const float* values) {
  std::uint64_t bytes = 4;
  for (const std::int64_t size : shape) bytes *= static_cast<std::uint64_t>(size);
  add_item({name, StoredDtype::f32, std::move(shape), values, bytes, nullptr});
}

void TensorFileWriter::add_i64(const std::string& name, std::vector<std::int64_t> values) {
  auto owned = std::make_shared<std::vector<std::int64_t>>(std::move(values));
  add_item(
      {name, StoredDtype::i64, {static_cast<std::int64_t>(owned->size())}, owned->data(), owned->size() * 8, owned});
}

void TensorFileWriter::add_u64(const std::string& name, std::vector<std::uint64_t> values) {
  auto owned = std::make_shared<std::vector<std::uint64_t>>(std::move(values));
  add_item(
      {name, StoredDtype::u64, {static_cast<std::int64_t>(owned->size())}, owned->data(), owned->size() * 8, owned});
}

void TensorFileWriter::set_metadata(const std::string& key, const std::string& text) {
  metadata_[key] = text;
}

void TensorFileWriter::write(const std::filesystem::path& path,
                             const std::function<void(std::int64_t)>& written) const {
  std::vector<Item> in_order = items_;
  std::stable_partition(in_order.begin(), in_order.end(), [](const Item& item) { return item.bytes % kLine == 0; });
  Json header = Json::object();
  if (!metadata_.empty()) header[kMetadataKey] = metadata_;
  std::uint64_t offset = 0;
  for (const Item& item : in_order) {
    header[item.name] = {{"dtype", stored_dtype_name(item.dtype)},
                         {"shape", item.shape},
                         {"data_offsets", {offset, offset + item.bytes}}};
    offset += item.bytes;
  }
  std::string text;
  try {
    text = json_line(header);
  } catch (const Json::exception&) {
    fail(path.string(), "names and metadata must be UTF-8");
  }
  const std::uint64_t length_bytes = sizeof(std::uint64_t);
  text.resize(round_up(length_bytes + text.size(), kLine) - length_bytes, ' ');
  if (text.size() > kMaxHeaderBytes) fail(path.string(), "header: {} bytes are more than readers accept", text.size());
  const std::uint64_t header_bytes = text.size();
  AtomicFile file(path);
  file.write({reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes});
  file.write(text);
  std::int64_t done = 0;
  for (const Item& item : in_order) {
    if (item.bytes > 0) file.write({static_cast<const char*>(item.data), item.bytes});
    if (written) written(++done);
  }
  file.commit();
}

}  // namespace etc
