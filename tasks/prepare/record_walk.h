// One input file from front to back: its records are cut, worked on by all threads and delivered in source order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/readers/record_slicer.h"
#include "etc_core/base/out_of_memory.h"
#include "etc_core/base/parallel.h"

namespace etc::prepare {

// What a walk does with each record.
template <typename Result>
struct RecordWork {
  // Thread-safe; an InputFault ends the walk before this record.
  std::function<Result(data::RecordSlice& slice)> work;
  // In source order, one at a time, but from any thread.
  std::function<void(std::int64_t index, const data::TextPosition& begin, Result&& result)> deliver;
  // Bytes of the file read so far; the last call comes when every record has been delivered. May throw to stop.
  std::function<void(std::int64_t file_bytes)> progress;
  // Gets size and SHA-256 of the file, which is then read to its end whatever stands there; null: not wanted. For what
  // can be read only once.
  data::SourceFile* source = nullptr;
};

struct PassEnd {
  std::optional<data::InputFault> fault;  // why the file could not be read to its end
  std::int64_t fault_record = 0;          // index of the record it lies in or before
  bool byte_order_mark = false;
  std::int64_t empty_lines = 0;  // where records are lines
};

// Enough records for every thread to stay busy, few enough to hold them twice; which, depends on the file alone.
struct SliceWindow {
  std::vector<data::RecordSlice> slices;
  std::optional<data::InputFault> end_fault;  // behind the last one
};

// path: of the file, for messages.
SliceWindow read_window(data::RecordSlicer& slicer, const std::filesystem::path& path);

[[noreturn]] void fail_out_of_memory(const std::filesystem::path& path, std::int64_t index,
                                     const data::TextPosition& begin);

// Memory: two windows of records (a few MB, or one record where that is larger), whatever the file's size. Records are
// delivered in the same order, and the walk ends at the same place, for any number of threads. Throws OutOfMemory
// naming file and record when there is no memory for reading or working on a record.
template <typename Result>
PassEnd walk_records(const std::filesystem::path& path, data::RecordLayout layout, const RecordWork<Result>& work) {
  struct Window : SliceWindow {
    explicit Window(SliceWindow read = {})
        : SliceWindow(std::move(read)), results(slices.size()), faults(slices.size()) {}
    std::vector<std::optional<Result>> results;
    std::vector<std::optional<data::InputFault>> faults;
  };
  data::ByteStream stream(path);
  data::Sha256 hash;
  if (work.source != nullptr) stream.hash_into(hash);
  data::RecordSlicer slicer(stream, layout);
  PassEnd end;
  const auto deliver = [&](Window& window) {
    for (std::size_t i = 0; i < window.slices.size(); ++i) {
      const data::RecordSlice& slice = window.slices[i];
      if (end.fault) return;
      end.fault = window.faults[i];
      end.fault_record = slice.index;
      if (end.fault) return;
      ++end.fault_record;
      work.deliver(slice.index, slice.begin, std::move(*window.results[i]));
    }
    if (!end.fault) end.fault = window.end_fault;
  };
  const auto process = [&](Window& window, std::size_t i) {
    try {
      window.results[i] = work.work(window.slices[i]);
    } catch (const data::InputFault& fault) {
      window.faults[i] = fault;
    } catch (const std::bad_alloc&) {
      fail_out_of_memory(path, window.slices[i].index, window.slices[i].begin);
    }
    std::string().swap(window.slices[i].text);
  };

  Window done;                                // worked on, not delivered yet
  Window current(read_window(slicer, path));  // read, not worked on yet
  while (!current.slices.empty() || current.end_fault) {
    Window next;
    // Task 0 delivers the window before and reads the one behind while the others work on this one.
    parallel_for(std::ssize(current.slices) + 1, [&](std::int64_t task) {
      if (task > 0) return process(current, static_cast<std::size_t>(task - 1));
      deliver(done);
      if (!end.fault && !current.end_fault) next = Window(read_window(slicer, path));
    });
    work.progress(stream.position());
    done = std::move(current);
    current = std::move(next);
    if (end.fault) break;
  }
  deliver(done);
  work.progress(stream.position());  // with all records delivered
  end.byte_order_mark = slicer.byte_order_mark();
  end.empty_lines = slicer.empty_lines();
  if (work.source != nullptr) {
    stream.read_rest();
    work.source->bytes = stream.position();
    work.source->sha256 = hash.hex();
  }
  return end;
}

}  // namespace etc::prepare
