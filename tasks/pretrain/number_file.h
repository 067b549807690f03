// Files of fixed-size entries in their memory representation: temporary data of a preparation beside its output, so that a
// text need not fit in memory. They are read only by the same program on the machine that wrote them.
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

// Thrown when a file of this kind cannot be read.
class NumberFileError : public Error {
 public:
  using Error::Error;
};

// Random-access reads of a file; several threads may read at once.
class RandomAccessFile : NotCopied {
 public:
  // Throws NumberFileError naming the file when it cannot be opened.
  explicit RandomAccessFile(std::filesystem::path path);
  ~RandomAccessFile();

  std::int64_t size() const { return size_; }
  // Reads all of [at, at + size). Throws NumberFileError naming the file when it is too short or cannot be read.
  void read(std::int64_t at, void* to, std::size_t size) const;

  // Keeps the whole file in memory if it has at most `budget` bytes, and subtracts its size from `budget`. For a small text,
  // a system call per instance would be a fifth of the total cost.
  void hold(std::int64_t& budget);
  const char* held() const { return held_.get(); }  // [size()]; null: not held, read on demand

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::unique_ptr<char[]> held_;
};

// Limit for all files of a run together, so that memory does not grow with the text.
constexpr std::int64_t kHeldBytes = std::int64_t{32} << 20;

// Writes entries sequentially; the file exists after finish().
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

// Reads entries of such a file by number. Neighbouring entries are read together and cached, so each thread needs an object
// of its own.
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
  std::array<Slot, 4> slots_;  // cached ranges: the current document, and others read in between
};

}  // namespace etc::pretrain
