#include "tasks/prepare/record_walk.h"

#include <cstring>

#include "etc_core/base/error.h"
#include "tasks/train/stop_signal.h"

namespace etc::prepare {

SliceWindow read_window(data::RecordReader& reader, const std::filesystem::path& path) {
  constexpr std::size_t kRecords = 128, kBytes = 4u << 20;  // limits of a window
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

namespace {
constexpr std::int64_t kNone = -1;  // instead of a length
}

void ResultTexts::add(std::string_view result) {
  const std::int64_t length = std::ssize(result);
  text_.append(reinterpret_cast<const char*>(&length), sizeof length).append(result);
}

void ResultTexts::add_none() {
  text_.append(reinterpret_cast<const char*>(&kNone), sizeof kNone);
}

std::optional<std::string_view> ResultTexts::next() {
  const std::string_view rest = std::string_view(text_).substr(at_);
  std::int64_t length = 0;
  if (rest.size() < sizeof length) fail("prepare", "another process worked on fewer records of a window than this one");
  std::memcpy(&length, rest.data(), sizeof length);
  at_ += sizeof length;
  if (length == kNone) return std::nullopt;
  at_ += static_cast<std::size_t>(length);
  return rest.substr(sizeof length, static_cast<std::size_t>(length));
}

void stop_helping_if_asked() {
  if (StopSignal::requested()) throw Interrupted(std::string("prepare: stopped by ") + StopSignal::name());
}

void fail_out_of_memory(const std::filesystem::path& path, std::int64_t index, const data::TextPosition& begin) {
  throw OutOfMemory(fmt::format("{}: record {} at byte {}: memory does not suffice for it (fewer --threads need less)",
                                data::raw_file_text(path), index, begin.byte_offset));
}

}  // namespace etc::prepare
