// Progress and interruption of `etc convert`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "etc_core/base/error.h"
#include "etc_core/base/progress.h"
#include "etc_core/checkpoint/convert/tensor_source.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

// Shows progress of reading and writing on stderr. The first SIGINT or SIGTERM ends the conversion at the next tensor,
// and temporary files are removed.
class Watch {
 public:
  // For TensorFileWriter::write and the like.
  std::function<void(std::int64_t)> writing(std::int64_t total) {
    progress_ = std::make_unique<Progress>("convert: written", total, "tensors");
    return [this](std::int64_t done) { update(done); };
  }
  void start_reading() { progress_ = std::make_unique<Progress>("convert: read", 0, "tensors"); }
  void read_one() {
    const std::lock_guard lock(mutex_);  // tensors are read by several threads
    update(++read_);
  }

 private:
  void update(std::int64_t done) {
    if (StopSignal::requested())
      throw Interrupted(fmt::format("etc convert: {}: nothing was written", StopSignal::name()));
    progress_->update(done);
  }

  StopSignal stop_signal_;
  std::mutex mutex_;
  std::int64_t read_ = 0;
  std::unique_ptr<Progress> progress_;
};

// A checkpoint with progress and signal checks while reading.
class WatchedSource : public convert::TensorSource {
 public:
  WatchedSource(std::unique_ptr<convert::TensorSource> source, Watch& watch)
      : source_(std::move(source)), watch_(watch) {
    watch_.start_reading();
  }
  const convert::SourceTensors& tensors() const override { return source_->tensors(); }
  const std::string& where() const override { return source_->where(); }
  void require_numbers() const override { source_->require_numbers(); }
  void read_blocks(std::string_view name, void* out, const BytesRead& seen) const override {
    source_->read_blocks(name, out, seen);
    watch_.read_one();
  }

 private:
  std::unique_ptr<convert::TensorSource> source_;
  Watch& watch_;
};

}  // namespace etc::cli
