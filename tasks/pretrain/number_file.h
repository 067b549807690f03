// Files of equal entries, as they lie in memory: what a preparation keeps beside its output while it runs, so that a
// text need not fit in memory. Read by the machine that wrote them, and by the same program.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/not_copied.h"

namespace etc::pretrain {

// Such a file cannot be read.
class NumberFileError : public Error {
 public:
  using Error::Error;
};

// Bytes of a file from any place; several threads may read at once.
class RandomAccessFile : NotCopied {
 public:
  // Throws NumberFileError naming the file when it cannot be opened.
  explicit RandomAccessFile(std::filesystem::path path);
  ~RandomAccessFile();

  std::int64_t size() const { return size_; }
  // All of [at, at + size). Throws NumberFileError naming the file when it ends before, or cannot be read.
  void read(std::int64_t at, void* to, std::size_t size) const;

  // Keeps the whole file in memory where it has no more than `budget` bytes, which become fewer by them: a call of the
  // system for every instance is a fifth of what a small text costs.
  void hold(std::int64_t& budget);
  const char* held() const { return held_.get(); }  // [size()]; null: it is read when asked for

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::unique_ptr<char[]> held_;
};

// Of a run's files together: what is held does not grow with the text.
constexpr std::int64_t kHeldBytes = std::int64_t{32} << 20;

// Writes entries one behind the other; the file is there after finish().
template <typename Entry>
class NumberWriter {
  static_assert(std::is_trivially_copyable_v<Entry>);

 public:
  explicit NumberWriter(const std::filesystem::path& path) : file_(path) {}

  void add(std::span<const Entry> entries) {
    buffer_.append(reinterpret_cast<const char*>(entries.data()), entries.size_bytes());
    count_ += std::ssize(entries);
    if (buffer_.size() >= kBufferBytes) flush();
  }
  void add(const Entry& entry) { add({&entry, 1}); }
  std::int64_t count() const { return count_; }

  void finish() {
    flush();
    file_.commit();
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }

  AtomicFile file_;
  std::string buffer_;
  std::int64_t count_ = 0;
};

// Entries of such a file by their number. Neighbours are read together and kept for a while: one object for each thread.
template <typename Entry>
class NumberReader {
 public:
  explicit NumberReader(const RandomAccessFile& file) : file_(&file) {}

  std::int64_t count() const { return file_->size() / kEntry; }

  Entry at(std::int64_t number) {
    if (file_->held() != nullptr) {
      Entry entry;
      std::memcpy(&entry, file_->held() + number * kEntry, sizeof entry);
      return entry;
    }
    const std::int64_t block = number / kBlock;
    Slot& slot = slots_[static_cast<std::size_t>(block) % slots_.size()];
    if (slot.block != block) load(slot, block);
    return slot.entries[static_cast<std::size_t>(number % kBlock)];
  }

 private:
  static constexpr std::int64_t kEntry = sizeof(Entry), kBlock = 1024;
  struct Slot {
    std::int64_t block = -1;
    std::vector<Entry> entries;
  };

  void load(Slot& slot, std::int64_t block) {
    const std::int64_t first = block * kBlock;
    slot.entries.resize(static_cast<std::size_t>(std::min(kBlock, count() - first)));
    file_->read(first * kEntry, slot.entries.data(), slot.entries.size() * sizeof(Entry));
    slot.block = block;
  }

  const RandomAccessFile* file_;
  std::array<Slot, 4> slots_;  // a document and others that are looked into meanwhile
};

}  // namespace etc::pretrain
