#include "etc_core/checkpoint/convert/pickle/torch_file.h"

#include <algorithm>
#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"
#include "etc_core/checkpoint/convert/pickle/zip_archive.h"
#include "etc_core/checkpoint/input_file.h"

namespace etc::convert {

namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kZipMagic = "PK\x03\x04";
// The complete first pickle of the older form: the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view kStreamMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15);
constexpr std::int64_t kStreamVersion = 1001;

const PickleValue* entry_of(const PickleValue& dictionary, std::string_view key) {
  for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    if (dictionary.items[i]->kind == Kind::text && dictionary.items[i]->text == key) return dictionary.items[i + 1];
  }
  return nullptr;
}

class ZipStorages : public TorchStorages {
 public:
  explicit ZipStorages(const std::filesystem::path& path) : zip_(path) {
    for (const auto& [name, member] : zip_.members()) {
      constexpr std::string_view kProgram = "/data.pkl";
      if (name.size() > kProgram.size() && name.ends_with(kProgram)) folder_ = name.substr(0, name.find('/') + 1);
    }
    if (folder_.empty() || zip_.members().count(program()) == 0) {
      fail(path.string(), "no data.pkl: not a PyTorch checkpoint");
    }
    if (zip_.members().count(folder_ + "byteorder") != 0 && member("byteorder") != "little") {
      fail(path.string(), "byteorder: expected little, got {}", member("byteorder"));
    }
  }
  std::string program() const { return folder_ + "data.pkl"; }
  std::string member(const std::string& name) const {
    const std::uint64_t size = zip_.members().at(folder_ + name).size;
    std::string bytes(std::min<std::uint64_t>(size, kMaxPickleBytes), '\0');
    zip_.read(folder_ + name, 0, bytes.size(), bytes.data());
    return bytes;
  }
  std::uint64_t bytes(const std::string& key) const override {
    const auto found = zip_.members().find(name_of(key));
    if (found == zip_.members().end()) fail(zip_.path().string(), "no storage {}", key);
    return found->second.size;
  }
  void read(const std::string& key, std::uint64_t begin, std::uint64_t size, void* out) const override {
    zip_.read(name_of(key), begin, size, out);
  }

 private:
  std::string name_of(const std::string& key) const { return folder_ + "data/" + key; }

  ZipArchive zip_;
  std::string folder_;  // "archive/"
};

// Storages after the pickles: for each key of the last pickle, eight bytes with the number of elements, then these.
class StreamStorages : public TorchStorages {
 public:
  explicit StreamStorages(const std::filesystem::path& path) : file_(path) {}
  const InputFile& file() const { return file_; }

  void locate(std::uint64_t begin, const PickleValue& keys, const std::map<std::string, StoredDtype>& dtypes) {
    const std::string where = file_.path().string();
    if (keys.kind != Kind::list) fail(where, "expected a list of storages, got {}", pickle_kind_name(keys.kind));
    for (const PickleValue* key : keys.items) {
      const auto dtype = key->kind == Kind::text ? dtypes.find(key->text) : dtypes.end();
      if (dtype == dtypes.end()) fail(where, "a storage that no tensor uses: its size cannot be known");
      std::uint64_t elements = 0;
      file_.read(begin, 8, &elements);
      begin += 8;
      const std::uint64_t size = stored_dtype_bytes(dtype->second);
      if (elements > (file_.size() - begin) / size) {
        fail(where, "storage {}: {} elements lie outside the file (cut off?)", key->text, elements);
      }
      if (!places_.emplace(key->text, Place{begin, elements * size}).second) {
        fail(where, "storage {} comes twice", key->text);
      }
      begin += elements * size;
    }
  }
  std::uint64_t bytes(const std::string& key) const override { return place(key).size; }
  void read(const std::string& key, std::uint64_t begin, std::uint64_t size, void* out) const override {
    file_.read(place(key).begin + begin, size, out);
  }

 private:
  struct Place {
    std::uint64_t begin, size;
  };
  const Place& place(const std::string& key) const {
    const auto found = places_.find(key);
    if (found == places_.end()) fail(file_.path().string(), "no storage {}", key);
    return found->second;
  }
  InputFile file_;
  std::map<std::string, Place> places_;
};

// Calls add(name, view) for the entries of a state dictionary.
template <typename Add>
void for_each_tensor(const PickleValue& dictionary, const std::string& where, Add&& add) {
  if (dictionary.kind != Kind::dictionary) {
    fail(where, "expected a dictionary of tensors, got {}", pickle_kind_name(dictionary.kind));
  }
  for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    const PickleValue &name = *dictionary.items[i], &value = *dictionary.items[i + 1];
    if (name.kind != Kind::text) fail(where, "expected names as keys, got {}", pickle_kind_name(name.kind));
    if (value.kind != Kind::tensor) {
      fail(where, "{}: expected a tensor, got {} (expected a state dictionary, not a whole model)", name.text,
           pickle_kind_name(value.kind));
    }
    add(name.text, *value.view);
  }
}

bool is_contiguous(const TensorView& view) {
  std::int64_t expected = 1;
  for (std::size_t axis = view.shape.size(); axis-- > 0;) {
    if (view.shape[axis] != 1 && view.strides[axis] != expected) return false;
    expected *= view.shape[axis];
  }
  return true;
}

}  // namespace

bool looks_like_torch_file(std::string_view first_bytes) {
  return first_bytes.starts_with(kZipMagic) || first_bytes.starts_with(kStreamMagic.substr(0, 4));
}

TorchFile::TorchFile(const std::filesystem::path& path) : where_(path.string()) {
  PickleMachine machine;
  const auto add_all = [&](const PickleValue& dictionary) {
    for_each_tensor(dictionary, where_, [&](const std::string& name, const TensorView& view) { add(name, view); });
  };
  const std::string first = InputFile(path).read_up_to(0, kStreamMagic.size());
  if (first.starts_with(kZipMagic)) {
    auto storages = std::make_unique<ZipStorages>(path);
    const std::string program = storages->member("data.pkl");
    storages_ = std::move(storages);
    add_all(machine.run(program, where_));
    return;
  }
  if (first != kStreamMagic) fail(where_, "not a PyTorch checkpoint");
  auto storages = std::make_unique<StreamStorages>(path);
  // Four pickles follow: format version, the writing machine, the dictionary, the keys of the storages in order.
  const std::string bytes = storages->file().read_up_to(kStreamMagic.size(), 2 * kMaxPickleBytes);
  std::size_t at = 0;
  const auto next = [&]() -> const PickleValue& {
    const PickleValue& value = machine.run(std::string_view(bytes).substr(at), where_);
    at += machine.consumed();
    return value;
  };
  if (const PickleValue& version = next(); version.kind != Kind::integer || version.integer != kStreamVersion) {
    fail(where_, "version of the file: expected {}", kStreamVersion);
  }
  const PickleValue& writer = next();
  const PickleValue* little = writer.kind == Kind::dictionary ? entry_of(writer, "little_endian") : nullptr;
  if (little == nullptr || little->integer != 1) fail(where_, "expected numbers in little-endian order");
  const PickleValue& dictionary = next();
  const PickleValue& keys = next();
  std::map<std::string, StoredDtype> dtypes;
  for_each_tensor(dictionary, where_, [&](const std::string& name, const TensorView& view) {
    const auto [known, fresh] = dtypes.emplace(view.storage, view.dtype);
    if (known->second != view.dtype) fail(where_, "{}: its storage has two types", name);
  });
  storages->locate(kStreamMagic.size() + at, keys, dtypes);
  storages_ = std::move(storages);
  add_all(dictionary);
}

void TorchFile::add(const std::string& name, const TensorView& view) {
  const std::string place = fmt::format("{}: {}", where_, name);
  const std::uint64_t element = stored_dtype_bytes(view.dtype);
  const auto elements = static_cast<std::int64_t>(storages_->bytes(view.storage) / element);
  if (view.storage_size != elements ||
      static_cast<std::uint64_t>(elements) * element != storages_->bytes(view.storage)) {
    fail(place, "storage {}: expected {} elements, the file has {} bytes", view.storage, view.storage_size,
         storages_->bytes(view.storage));
  }
  const auto bytes = bytes_of(view.dtype, view.shape);
  // More elements than the storage has would be an expanded view. Weights never are, and its size could be arbitrary.
  if (!bytes || *bytes / element > static_cast<std::uint64_t>(elements)) {
    fail(place, "{} needs more elements than the {} of its storage", shape_text(view.shape), elements);
  }
  std::int64_t last = 0;  // index of the view's last element in the storage
  bool fits = !__builtin_add_overflow(view.storage_offset, view.view_offset, &last);
  for (std::size_t axis = 0; axis < view.shape.size() && fits; ++axis) {
    std::int64_t reach = 0;
    fits = !__builtin_mul_overflow(std::max<std::int64_t>(0, view.shape[axis] - 1), view.strides[axis], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (!fits || (*bytes > 0 && last >= elements)) {
    fail(place, "{} with strides {} from {} on reaches beyond the {} elements of its storage", shape_text(view.shape),
         shape_text(view.strides), view.view_offset, elements);
  }
  if (!views_.emplace(name, view).second) fail(place, "comes twice");
  tensors_.emplace(name, SourceTensor{view.dtype, view.shape});
}

void TorchFile::read_blocks(std::string_view name, void* out, const BytesRead& seen) const {
  const std::uint64_t bytes = at(name).bytes();
  read_view(name, bytes, out);
  if (seen) seen(static_cast<const char*>(out), bytes);
}

void TorchFile::read_view(std::string_view name, std::uint64_t bytes, void* out) const {
  const TensorView& view = views_.find(name)->second;
  if (bytes == 0) return;
  const std::uint64_t element = stored_dtype_bytes(view.dtype);
  const auto first = static_cast<std::uint64_t>(view.storage_offset + view.view_offset) * element;
  if (is_contiguous(view)) return storages_->read(view.storage, first, bytes, out);
  // A transposed or otherwise strided view: read its whole range, then copy element by element in row-major order.
  std::int64_t span = 1;
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis) span += (view.shape[axis] - 1) * view.strides[axis];
  std::string stored(static_cast<std::size_t>(span) * element, '\0');
  storages_->read(view.storage, first, stored.size(), stored.data());
  std::vector<std::int64_t> index(view.shape.size(), 0);
  std::int64_t from = 0;
  for (auto* to = static_cast<char*>(out); to < static_cast<char*>(out) + bytes; to += element) {
    std::memcpy(to, stored.data() + static_cast<std::uint64_t>(from) * element, element);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      from += view.strides[axis];
      if (++index[axis] < view.shape[axis]) break;
      from -= view.shape[axis] * view.strides[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace etc::convert
