// Reads one input file from beginning to end: its records are processed by all threads and delivered in source order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/readers/record_reader.h"
#include "etc_core/base/out_of_memory.h"
#include "etc_core/base/parallel.h"
#include "etc_core/comm/communicator.h"
#include "tasks/prepare/preparation.h"

namespace etc::prepare {

// How several processes share a walk: all walk over the same file, and each works on some of the records; the first one
// receives the results of the others and delivers. Calls come from one thread at a time.
template <typename Result>
struct SharedWalk {
  Communicator& processes;
  std::function<std::string(const Result& result)> to_text;
  std::function<Result(std::string_view text)> from_text;
};

// The functions of a walk for each record.
template <typename Result>
struct RecordWork {
  // Thread-safe; an InputFault ends the walk before this record.
  std::function<Result(data::RecordSlice& slice)> work;
  // In source order, one at a time, but from any thread.
  std::function<void(std::int64_t index, const data::TextPosition& begin, Result&& result)> deliver;
  // Bytes of the file read so far; the last call comes when every record has been delivered. May throw to stop.
  std::function<void(std::int64_t file_bytes)> progress;
  // Receives size and SHA-256 of the file, which is then always read to its end; null: not wanted. For inputs that can
  // be read only once.
  data::SourceFile* source = nullptr;
  // Null, or one process: this process does everything.
  const SharedWalk<Result>* shared = nullptr;
};

struct PassEnd {
  std::optional<data::InputFault> fault;  // why the file could not be read to its end
  std::int64_t fault_record = 0;          // index of the record in which or before which it occurs
  std::vector<data::FileNote> notes;
};

// Enough records to keep every thread busy, few enough to hold two windows; the windows depend only on the file.
struct SliceWindow {
  std::vector<data::RecordSlice> slices;
  std::optional<data::InputFault> end_fault;  // after the last one
};

// path: of the file, for messages.
SliceWindow read_window(data::RecordReader& reader, const std::filesystem::path& path);

[[noreturn]] void fail_out_of_memory(const std::filesystem::path& path, std::int64_t index,
                                     const data::TextPosition& begin);

// Serialised results of one process for a window; or none, if a record could not be processed.
class ResultTexts {
 public:
  explicit ResultTexts(std::string text = {}) : text_(std::move(text)) {}
  void add(std::string_view result);
  void add_none();
  const std::string& text() const { return text_; }
  std::optional<std::string_view> next();  // in the order of add()

 private:
  std::string text_;
  std::size_t at_ = 0;
};

// The parts of walk_records.
template <typename Result>
class RecordWalk {
 public:
  RecordWalk(const Preparation& preparation, const std::filesystem::path& path, const RecordWork<Result>& work)
      : path_(path), work_(work), stream_(path) {
    if (work_.source != nullptr) stream_.hash_into(hash_);
    reader_ = preparation.open_records(stream_);
  }

  PassEnd execute() {
    Window done;              // processed, not delivered yet
    Window current = read();  // read, not processed yet
    while (!current.slices.empty() || current.end_fault) {
      Window next;
      // Task 0 delivers the previous window and reads the next one while the others process this one.
      parallel_for(std::ssize(current.slices) + 1, [&](std::int64_t task) {
        if (task > 0) return process(current, static_cast<std::size_t>(task - 1));
        deliver(done);
        if (!ended() && !current.end_fault) next = read();
      });
      work_.progress(stream_.position());
      done = std::move(current);
      current = std::move(next);
      if (ended()) break;
    }
    deliver(done);
    work_.progress(stream_.position());  // all records are delivered
    end_.notes = reader_->notes();
    if (work_.source != nullptr) finish_source();
    return std::move(end_);
  }

 private:
  struct Window : SliceWindow {
    explicit Window(SliceWindow read = {})
        : SliceWindow(std::move(read)), results(slices.size()), faults(slices.size()) {}
    std::vector<std::optional<Result>> results;
    std::vector<std::optional<data::InputFault>> faults;
  };

  Window read() { return Window(read_window(*reader_, path_)); }

  bool ended() const { return end_.fault || ended_elsewhere_; }

  bool is_shared() const { return work_.shared != nullptr && work_.shared->processes.size() > 1; }

  // The rank that works on a record.
  int owner_of(const data::RecordSlice& slice) const {
    return is_shared() ? static_cast<int>(slice.index % work_.shared->processes.size()) : 0;
  }
  int rank() const { return is_shared() ? work_.shared->processes.rank() : 0; }

  void process(Window& window, std::size_t i) const {
    if (owner_of(window.slices[i]) == rank()) return work_on(window, i);
    if (rank() != 0) std::string().swap(window.slices[i].text);  // the first process may need it
  }

  void work_on(Window& window, std::size_t i) const {
    try {
      window.results[i] = work_.work(window.slices[i]);
    } catch (const data::InputFault& fault) {
      window.faults[i] = fault;
    } catch (const std::bad_alloc&) {
      fail_out_of_memory(path_, window.slices[i].index, window.slices[i].begin);
    }
    std::string().swap(window.slices[i].text);
  }

  void deliver(Window& window) {
    if (is_shared() && !gather(window)) return;
    for (std::size_t i = 0; i < window.slices.size(); ++i) {
      const data::RecordSlice& slice = window.slices[i];
      if (end_.fault) return;
      end_.fault = window.faults[i];
      end_.fault_record = slice.index;
      if (end_.fault) return;
      ++end_.fault_record;
      work_.deliver(slice.index, slice.begin, std::move(*window.results[i]));
    }
    if (!end_.fault) end_.fault = window.end_fault;
  }

  // In the first process collects all results of the window and returns true: it delivers them. First all learn whether
  // the previous window ended the walk, so that no process waits for its delivery.
  bool gather(Window& window) {
    if (ended_elsewhere_) return false;
    const SharedWalk<Result>& shared = *work_.shared;
    ended_elsewhere_ = !from_first(shared.processes, end_.fault ? "ended" : "").empty();
    if (ended_elsewhere_) return false;
    ResultTexts own;
    for (std::size_t i = 0; rank() != 0 && i < window.slices.size(); ++i) {
      if (owner_of(window.slices[i]) != rank()) continue;
      window.results[i] ? own.add(shared.to_text(*window.results[i])) : own.add_none();
      window.results[i].reset();
    }
    std::vector<ResultTexts> all;
    for (std::string& text : collect(shared.processes, own.text())) all.emplace_back(std::move(text));
    if (rank() != 0) return false;
    for (std::size_t i = 0; i < window.slices.size(); ++i) {
      const int owner = owner_of(window.slices[i]);
      if (owner == 0) continue;
      if (const auto text = all[static_cast<std::size_t>(owner)].next()) {
        window.results[i] = shared.from_text(*text);
        std::string().swap(window.slices[i].text);
      } else {
        work_on(window, i);  // reproduces the fault in this process
      }
    }
    return true;
  }

  void finish_source() {
    stream_.read_rest();
    work_.source->bytes = stream_.position();
    work_.source->sha256 = hash_.hex();
  }

  const std::filesystem::path& path_;
  const RecordWork<Result>& work_;
  data::ByteStream stream_;
  data::Sha256 hash_;
  std::unique_ptr<data::RecordReader> reader_;
  PassEnd end_;
  bool ended_elsewhere_ = false;  // the first process found a fault
};

// Walks over the records of a file as read by the preparation. Memory: two windows of records (a few MB, or one record
// if that is larger), whatever the file's size. Records are delivered in the same order, and the walk ends at the same
// position, for any number of threads. Throws OutOfMemory naming file and record when there is no memory for reading or
// processing a record.
template <typename Result>
PassEnd walk_records(const Preparation& preparation, const std::filesystem::path& path,
                     const RecordWork<Result>& work) {
  return RecordWalk<Result>(preparation, path, work).execute();
}

// Called between windows by all processes but the first: throws Interrupted after a stop signal.
void stop_helping_if_asked();

// The part of the other processes in a shared walk; only work.work and work.shared are used.
template <typename Result>
void help_to_walk(const Preparation& preparation, const std::filesystem::path& path, RecordWork<Result> work) {
  work.deliver = [](std::int64_t, const data::TextPosition&, Result&&) {};
  work.progress = [](std::int64_t) { stop_helping_if_asked(); };
  walk_records(preparation, path, work);
}

}  // namespace etc::prepare
