#include "tasks/prepare/record_walk.h"

namespace etc::prepare {

SliceWindow read_window(data::RecordReader& reader, const std::filesystem::path& path) {
  constexpr std::size_t kRecords = 128, kBytes = 4u << 20;  // a window is full with this many
  SliceWindow window;
  data::RecordSlice slice;
  try {
    std::size_t bytes = 0;
    while (window.slices.size() < kRecords && bytes < kBytes) {
      slice = {};
      if (!reader.next(slice)) break;
      bytes += slice.text.size();
      window.slices.push_back(std::move(slice));
    }
  } catch (const data::InputFault& fault) {
    window.end_fault = fault;
  } catch (const std::bad_alloc&) {
    fail_out_of_memory(path, slice.index, slice.begin);
  }
  return window;
}

void fail_out_of_memory(const std::filesystem::path& path, std::int64_t index, const data::TextPosition& begin) {
  throw OutOfMemory(fmt::format("{}: record {} at byte {}: memory does not suffice for it (fewer --threads need less)",
                                data::raw_file_text(path), index, begin.byte_offset));
}

}  // namespace etc::prepare
