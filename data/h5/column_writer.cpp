#include <algorithm>
#include <bit>
#include <cstring>

#include "data/h5/chunk_codec.h"
#include "data/h5/column.h"

namespace etc::data::h5 {

namespace {

Handle create_data_set(hid_t group, const std::string& name, NumberType type, const std::string& where) {
  constexpr const char* kAction = "create the data set";
  const hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = kChunk;
  const Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose, where, kAction);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, where, kAction);
  require(H5Pset_obj_track_times(creation.id(), false), where, kAction);
  require(H5Pset_chunk(creation.id(), 1, &chunk), where, kAction);
  require(H5Pset_shuffle(creation.id()), where, kAction);
  require(H5Pset_deflate(creation.id(), kDeflateLevel), where, kAction);
  require(H5Pset_fletcher32(creation.id()), where, kAction);
  // No chunk cache is needed: each chunk is written once, as a whole.
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, where, kAction);
  require(H5Pset_chunk_cache(access.id(), 0, 0, 1.0), where, kAction);
  return Handle(H5Dcreate2(group, name.c_str(), file_type(type), space.id(), H5P_DEFAULT, creation.id(), access.id()),
                H5Dclose, where, kAction);
}

}  // namespace

ColumnWriter::ColumnWriter(hid_t group, const std::string& name, NumberType type, std::string where)
    : where_(std::move(where)), type_(type), data_set_(create_data_set(group, name, type, where_)) {}

void ColumnWriter::append(std::span<const std::int64_t> values) {
  append_converted(values);
}

void ColumnWriter::append(std::span<const float> values) {
  append_converted(values);
}

void ColumnWriter::append(std::string_view bytes) {
  append_converted(std::span<const unsigned char>(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

template <typename Value>
void ColumnWriter::append_converted(std::span<const Value> values) {
  visit_number(type_, [&](auto zero) {
    using Stored = decltype(zero);
    while (!values.empty()) {
      const std::int64_t held = size_ - written_;
      const std::size_t take = std::min<std::size_t>(values.size(), static_cast<std::size_t>(kChunk - held));
      const std::size_t offset = pending_.size();
      pending_.resize(offset + take * sizeof(Stored));
      // Local pointers: the compiler cannot rule out that the char stores alias the members, and would not vectorise
      // the loop.
      char* const to = pending_.data() + offset;
      const Value* const from = values.data();
      for (std::size_t i = 0; i < take; ++i) {
        const Stored stored = static_cast<Stored>(from[i]);
        std::memcpy(to + i * sizeof(Stored), &stored, sizeof(Stored));
      }
      size_ += static_cast<std::int64_t>(take);
      values = values.subspan(take);
      if (size_ - written_ == kChunk) write_chunk();
    }
  });
}

void ColumnWriter::flush() {
  if (size_ > written_) write_chunk();
}

void ColumnWriter::write_chunk() {
  static_assert(std::endian::native == std::endian::little, "numbers in the file are those in memory");
  const hsize_t first = static_cast<hsize_t>(written_), length = static_cast<hsize_t>(size_);
  require(H5Dset_extent(data_set_.id(), &length), where_, "extend the data set");
  const std::span<const std::byte> packed = pack_chunk(std::as_bytes(std::span(pending_)), type_.size, kChunk);
  constexpr std::uint32_t kNoFilterSkipped = 0;
  require(H5Dwrite_chunk(data_set_.id(), H5P_DEFAULT, kNoFilterSkipped, &first, packed.size(), packed.data()), where_,
          "write");
  written_ = size_;
  pending_.clear();
}

}  // namespace etc::data::h5
