#include "tasks/prepare/record_walk.h"

namespace etc::prepare {

SliceWindow read_window(data::RecordSlicer& slicer) {
  constexpr std::size_t kRecords = 128, kBytes = 4u << 20;  // a window is full with this many
  SliceWindow window;
  try {
    std::size_t bytes = 0;
    while (window.slices.size() < kRecords && bytes < kBytes) {
      data::RecordSlice slice;
      if (!slicer.next(slice)) break;
      bytes += slice.text.size();
      window.slices.push_back(std::move(slice));
    }
  } catch (const data::InputFault& fault) {
    window.end_fault = fault;
  }
  return window;
}

}  // namespace etc::prepare
