#include "tests/support/simt/emulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "etc_core/base/cuda/runtime_errors.h"
#include "etc_core/base/cuda/simt_host.h"
#include "etc_core/base/integers.h"
#include "tests/support/simt/device_loss.h"
#include "tests/support/simt/device_space.h"
#include "tests/support/simt/fiber.h"
#include "tests/support/simt/shadow.h"

namespace etc::simt {

namespace {

constexpr int kMaxThreads = 1024;
constexpr std::int64_t kMaxGridX = 2147483647, kMaxGridYZ = 65535;

// What a thread waits for; all lanes of a warp must wait for the same.
enum class Wait { nothing, block_barrier, warp_barrier, shuffle, any, all, load_matrix, load_matrix_transposed, mma };

const char* wait_name(Wait wait) {
  switch (wait) {
    case Wait::nothing:
      return "nothing";
    case Wait::block_barrier:
      return "sync_block";
    case Wait::warp_barrier:
      return "sync_warp";
    case Wait::shuffle:
      return "shuffle";
    case Wait::any:
      return "any";
    case Wait::all:
      return "all";
    case Wait::load_matrix:
      return "load_matrix";
    case Wait::load_matrix_transposed:
      return "load_matrix_transposed";
    case Wait::mma:
      return "mma";
  }
  return "";
}

// A pending copy_async.
struct Copy {
  std::uint32_t offset;
  int bytes;
  const void* from;  // null: zeros
  int group;         // of the thread, numbered by commits
};

struct Thread {
  Fiber fiber;
  bool ended = true;
  Wait wait = Wait::nothing;
  Site site{"", 0};
  // The lane's arguments of the operation that its warp waits for.
  std::uint32_t value = 0, offset = 0;  // shuffle and votes; load_matrix
  int lane = 0;
  std::uint32_t* r = nullptr;
  float* c = nullptr;
  const std::uint32_t* a = nullptr;
  const std::uint32_t* b = nullptr;
  std::vector<Copy> copies;
  int committed = 0;
};

const char* file_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

bool same_text(const char* a, const char* b) {
  return a == b || std::strcmp(a, b) == 0;
}

class Emulator {
 public:
  void launch(const char* name, const Grid& grid, int threads, std::int64_t max_shared, void (*run)(const void*),
              const void* params);

  Thread& self() { return *threads_[static_cast<std::size_t>(current_)]; }
  int current() const { return current_; }
  std::int64_t block_index(int axis) const { return block_[axis]; }
  const Moment& now() const { return now_; }
  std::int64_t block_number() const { return block_number_; }
  std::int64_t shared_bytes() const { return shared_bytes_; }
  unsigned char* shared() { return shared_.data(); }
  // Words are accessed by the first of their two cells, so first cells lie together.
  SharedCell& cell(std::uint32_t offset) {
    return cells_[offset % 4 < 2 ? offset / 4 : second_cells_ + offset / 4].of_block(cells_block_);
  }
  GlobalShadow& global() { return global_; }
  EmulatorCounts counts;
  std::map<std::string, std::int64_t> launches_by_name;

  void wait(Wait what, Site site) {
    Thread& thread = self();
    thread.wait = what;
    thread.site = site;
    thread.fiber.pause();
  }

  [[noreturn]] void fault(Site site, const std::string& what) const {
    throw Fault(fmt::format("{}: block ({}, {}, {}), thread {}, {}:{}: {}", kernel_, block_[0], block_[1], block_[2],
                            current_, file_name(site.file), site.line, what));
  }
  template <Conflict (SharedCell::*kAccess)(const Moment&)>
  void check_cell(std::uint32_t at, Site site, const char* verb) {
    const Conflict conflict = (cell(at).*kAccess)(now_);
    if (conflict.trouble != Trouble::none) shared_fault(conflict, at, site, verb);
  }
  // `step`: 4 if only whole words are accessed, else 2.
  template <Conflict (SharedCell::*kAccess)(const Moment&)>
  void check_cells(std::uint32_t offset, std::uint32_t bytes, std::uint32_t step, Site site, const char* verb) {
    for (std::uint32_t at = offset; at < offset + bytes; at += step) check_cell<kAccess>(at, site, verb);
  }
  void land(const Copy& copy);

 private:
  Moment moment_of(int thread) const {
    return {static_cast<std::uint16_t>(thread), static_cast<std::uint16_t>(interval_),
            warp_intervals_[static_cast<std::size_t>(thread / kWarp)]};
  }
  // The following operations are this thread's.
  void act_as(int thread) {
    current_ = thread;
    now_ = moment_of(thread);
  }
  [[noreturn]] void shared_fault(Conflict conflict, std::uint32_t at, Site site, const char* verb) const;
  void check_limits(const Grid& grid, int threads, std::int64_t max_shared) const;
  void run_block();
  bool run_warp(int warp);
  void finish_warp_wait(int first, int count);
  void load_matrix(int first, bool transposed);
  void mma(int first);
  void resume(int thread);

  const char* kernel_ = "";
  void (*run_)(const void*) = nullptr;
  const void* params_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;
  int thread_count_ = 0, current_ = 0;
  Moment now_;  // of the current thread
  std::int64_t block_[3] = {0, 0, 0}, block_number_ = 0;
  std::uint32_t interval_ = 0;
  std::vector<std::uint32_t> warp_intervals_;
  std::int64_t shared_bytes_ = 0;
  std::vector<unsigned char> shared_;
  std::vector<SharedCell> cells_;
  std::size_t second_cells_ = 0;   // where they begin
  std::uint32_t cells_block_ = 0;  // blocks begun in all launches
  GlobalShadow global_;
  std::exception_ptr failure_;
};

// Not local to a function, which would check at every access whether it is the first.
Emulator g_emulator;

Emulator& emulator() {
  return g_emulator;
}

void Emulator::check_limits(const Grid& grid, int threads, std::int64_t max_shared) const {
  const auto refuse = [&](const std::string& what) { throw Fault(fmt::format("{}: {}", kernel_, what)); };
  if (threads < 1 || threads > kMaxThreads) refuse(fmt::format("{} threads, at most {} fit", threads, kMaxThreads));
  if (grid.x < 0 || grid.x > kMaxGridX) refuse(fmt::format("grid x of {}, at most {}", grid.x, kMaxGridX));
  if (grid.y < 0 || grid.y > kMaxGridYZ) refuse(fmt::format("grid y of {}, at most {}", grid.y, kMaxGridYZ));
  if (grid.z < 0 || grid.z > kMaxGridYZ) refuse(fmt::format("grid z of {}, at most {}", grid.z, kMaxGridYZ));
  if (max_shared > kSharedLimit) refuse(fmt::format("kMaxShared of {}, a block has {}", max_shared, kSharedLimit));
  const std::int64_t allowed = std::max(max_shared, kSharedWithoutAttribute);
  if (grid.shared_bytes > allowed) {
    refuse(fmt::format("{} bytes of shared memory, the kernel's kMaxShared allows {}", grid.shared_bytes, allowed));
  }
}

void Emulator::launch(const char* name, const Grid& grid, int threads, std::int64_t max_shared,
                      void (*run)(const void*), const void* params) {
  kernel_ = name;
  check_limits(grid, threads, max_shared);
  run_ = run;
  params_ = params;
  thread_count_ = threads;
  shared_bytes_ = grid.shared_bytes;
  while (threads_.size() < static_cast<std::size_t>(threads)) threads_.push_back(std::make_unique<Thread>());
  warp_intervals_.assign(static_cast<std::size_t>(ceil_div(threads, kWarp)), 0);
  shared_.resize(static_cast<std::size_t>(shared_bytes_));
  second_cells_ = static_cast<std::size_t>(ceil_div(shared_bytes_, std::int64_t{4}));
  cells_.resize(2 * second_cells_);
  global_.forget();
  ++counts.launches;
  ++launches_by_name[name];
  block_number_ = 0;
  for (block_[2] = 0; block_[2] < grid.z; ++block_[2]) {
    for (block_[1] = 0; block_[1] < grid.y; ++block_[1]) {
      for (block_[0] = 0; block_[0] < grid.x; ++block_[0], ++block_number_) run_block();
    }
  }
}

void Emulator::resume(int thread) {
  act_as(thread);
  Thread& t = *threads_[static_cast<std::size_t>(thread)];
  t.wait = Wait::nothing;
  t.ended = !t.fiber.resume();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

// Runs the lanes of a warp until all of them wait at a block barrier or have ended.
bool Emulator::run_warp(int warp) {
  const int first = warp * kWarp, count = std::min(kWarp, thread_count_ - first);
  while (true) {
    for (int i = first; i < first + count; ++i) {
      const Thread& t = *threads_[static_cast<std::size_t>(i)];
      if (!t.ended && t.wait == Wait::nothing) resume(i);
    }
    int ended = 0;
    for (int i = first; i < first + count; ++i) ended += threads_[static_cast<std::size_t>(i)]->ended ? 1 : 0;
    if (ended == count) return false;
    const Thread* waiting = nullptr;  // the first lane that waits
    for (int i = first; i < first + count; ++i) {
      const Thread& t = *threads_[static_cast<std::size_t>(i)];
      if (t.ended) continue;
      if (waiting == nullptr) waiting = &t;
      current_ = i;
      if (t.wait != waiting->wait) {
        fault(t.site,
              fmt::format("divergence: this lane waits at {}, another of its warp at {} in {}:{}", wait_name(t.wait),
                          wait_name(waiting->wait), file_name(waiting->site.file), waiting->site.line));
      }
    }
    if (ended > 0) {
      fault(waiting->site,
            fmt::format("divergence: lanes of this warp wait at {}, {} have ended", wait_name(waiting->wait), ended));
    }
    if (waiting->wait == Wait::block_barrier) return true;
    if (count < kWarp && waiting->wait != Wait::warp_barrier) {
      fault(waiting->site, fmt::format("{} in a warp of {} lanes", wait_name(waiting->wait), count));
    }
    finish_warp_wait(first, count);
    for (int i = first; i < first + count; ++i) threads_[static_cast<std::size_t>(i)]->wait = Wait::nothing;
  }
}

void Emulator::run_block() {
  ++counts.blocks;
  interval_ = 0;
  std::fill(warp_intervals_.begin(), warp_intervals_.end(), 0u);
  if (++cells_block_ == SharedCell::kBlocks) {
    std::fill(cells_.begin(), cells_.end(), SharedCell());
    cells_block_ = 1;
  }
  std::fill(shared_.begin(), shared_.end(), static_cast<unsigned char>(0xcd));
  for (int i = 0; i < thread_count_; ++i) {
    Thread& t = *threads_[static_cast<std::size_t>(i)];
    t.ended = false;
    t.wait = Wait::nothing;
    t.copies.clear();
    t.committed = 0;
    t.fiber.start([this] {
      try {
        run_(params_);
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
  }
  const int warps = ceil_div(thread_count_, kWarp);
  while (true) {
    int ended = 0;
    for (int w = 0; w < warps; ++w) ended += run_warp(w) ? 0 : 1;
    if (ended == warps) break;
    const Thread* waiting = nullptr;
    for (int i = 0; i < thread_count_; ++i) {
      const Thread& t = *threads_[static_cast<std::size_t>(i)];
      if (t.ended) continue;
      current_ = i;
      if (waiting == nullptr) waiting = &t;
      if (t.site.line != waiting->site.line || !same_text(t.site.file, waiting->site.file)) {
        fault(t.site, fmt::format("divergence: this thread waits at a sync_block, another at one in {}:{}",
                                  file_name(waiting->site.file), waiting->site.line));
      }
    }
    if (ended > 0) fault(waiting->site, "divergence: threads wait at sync_block, other warps of the block have ended");
    ++interval_;
    for (int i = 0; i < thread_count_; ++i) threads_[static_cast<std::size_t>(i)]->wait = Wait::nothing;
  }
  for (int i = 0; i < thread_count_; ++i) {
    current_ = i;
    if (!self().copies.empty()) fault(Site{"", 0}, "ended with a copy_async it never waited for");
  }
}

void Emulator::finish_warp_wait(int first, int count) {
  const auto lane = [&](int i) -> Thread& { return *threads_[static_cast<std::size_t>(first + i)]; };
  switch (lane(0).wait) {
    case Wait::warp_barrier:
      ++warp_intervals_[static_cast<std::size_t>(first / kWarp)];
      break;
    case Wait::shuffle: {
      std::uint32_t values[kWarp];
      for (int i = 0; i < kWarp; ++i) values[i] = lane(i).value;
      for (int i = 0; i < kWarp; ++i) lane(i).value = values[static_cast<std::uint32_t>(lane(i).lane) % kWarp];
      break;
    }
    case Wait::any:
    case Wait::all: {
      std::uint32_t sum = 0;
      for (int i = 0; i < count; ++i) sum += lane(i).value;
      const std::uint32_t result = lane(0).wait == Wait::any ? sum > 0 : sum == kWarp;
      for (int i = 0; i < count; ++i) lane(i).value = result;
      break;
    }
    case Wait::load_matrix:
      load_matrix(first, false);
      break;
    case Wait::load_matrix_transposed:
      load_matrix(first, true);
      break;
    case Wait::mma:
      mma(first);
      break;
    default:
      break;
  }
}

void Emulator::load_matrix(int first, bool transposed) {
  std::uint16_t matrices[4][8][8];
  for (int i = 0; i < kWarp; ++i) {
    act_as(first + i);
    const Thread& t = self();
    if (t.offset % 16 != 0) fault(t.site, fmt::format("unaligned: a row of 16 bytes at offset {}", t.offset));
    check_cells<&SharedCell::read>(t.offset, 16, 2, t.site, "read");
    std::memcpy(matrices[i / 8][i % 8], shared_.data() + t.offset, 16);
  }
  for (int i = 0; i < kWarp; ++i) {
    const Thread& t = *threads_[static_cast<std::size_t>(first + i)];
    for (int m = 0; m < 4; ++m) {
      const int row = i / 4, column = 2 * (i % 4);
      const std::uint32_t low = transposed ? matrices[m][column][row] : matrices[m][row][column];
      const std::uint32_t high = transposed ? matrices[m][column + 1][row] : matrices[m][row][column + 1];
      t.r[m] = low | high << 16;
    }
  }
}

void Emulator::mma(int first) {
  float a[16][16], b[16][8];
  for (int i = 0; i < kWarp; ++i) {
    const Thread& t = *threads_[static_cast<std::size_t>(first + i)];
    const int row = i / 4, column = 2 * (i % 4);
    for (int h = 0; h < 2; ++h) {
      const int shift = 16 * h;
      a[row][column + h] = float_from_bf16(t.a[0] >> shift & 0xffffu);
      a[row + 8][column + h] = float_from_bf16(t.a[1] >> shift & 0xffffu);
      a[row][column + 8 + h] = float_from_bf16(t.a[2] >> shift & 0xffffu);
      a[row + 8][column + 8 + h] = float_from_bf16(t.a[3] >> shift & 0xffffu);
      b[column + h][row] = float_from_bf16(t.b[0] >> shift & 0xffffu);
      b[column + 8 + h][row] = float_from_bf16(t.b[1] >> shift & 0xffffu);
    }
  }
  for (int i = 0; i < kWarp; ++i) {
    const Thread& t = *threads_[static_cast<std::size_t>(first + i)];
    for (int e = 0; e < 4; ++e) {
      const int row = i / 4 + 8 * (e / 2), column = 2 * (i % 4) + e % 2;
      float sum = t.c[e];
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      t.c[e] = sum;
    }
  }
}

void Emulator::shared_fault(Conflict conflict, std::uint32_t at, Site site, const char* verb) const {
  if (conflict.trouble == Trouble::uninitialised) {
    fault(site, fmt::format("uninitialised: {} of shared memory at offset {} that nobody has written", verb, at));
  }
  if (conflict.trouble == Trouble::in_flight) {
    fault(site, fmt::format("race: {} of shared memory at offset {} while a copy_async of thread {} is under way", verb,
                            at, conflict.other));
  }
  fault(site,
        fmt::format("race: {} of shared memory at offset {} that thread {} touches without a barrier between them",
                    verb, at, conflict.other));
}

void Emulator::land(const Copy& copy) {
  if (copy.from == nullptr) {
    std::memset(shared_.data() + copy.offset, 0, static_cast<std::size_t>(copy.bytes));
  } else {
    std::memcpy(shared_.data() + copy.offset, copy.from, static_cast<std::size_t>(copy.bytes));
  }
  for (int at = 0; at < copy.bytes; at += 2) cell(copy.offset + static_cast<std::uint32_t>(at)).land(now());
}

}  // namespace

EmulatorCounts emulator_counts() {
  return emulator().counts;
}

std::int64_t launches_of(const std::string& kernel) {
  return emulator().launches_by_name[kernel];
}

namespace host {

int thread_index() {
  return emulator().current();
}
std::int64_t block_index(int axis) {
  return emulator().block_index(axis);
}
void sync_block(Site site) {
  emulator().wait(Wait::block_barrier, site);
}
void sync_warp(Site site) {
  emulator().wait(Wait::warp_barrier, site);
}

std::uint32_t shuffle(std::uint32_t value, int lane, Site site) {
  Thread& self = emulator().self();
  self.value = value;
  self.lane = lane;
  emulator().wait(Wait::shuffle, site);
  return self.value;
}
bool any(bool predicate, Site site) {
  Thread& self = emulator().self();
  self.value = predicate ? 1 : 0;
  emulator().wait(Wait::any, site);
  return self.value != 0;
}
bool all(bool predicate, Site site) {
  Thread& self = emulator().self();
  self.value = predicate ? 1 : 0;
  emulator().wait(Wait::all, site);
  return self.value != 0;
}

namespace {

// Checks bounds and alignment of elements [i, i + count) of a span; returns their address.
std::uintptr_t check_place(const void* base, std::int64_t size, std::int64_t i, std::int64_t element_bytes,
                           std::int64_t count, Site site, const char* verb) {
  Emulator& e = emulator();
  if (base == nullptr) e.fault(site, fmt::format("out of bounds: {} of element {} of a null span", verb, i));
  if (i < 0 || i + count > size) {
    e.fault(site, fmt::format("out of bounds: {} of element {} of {} in global memory", verb, i < 0 ? i : i + count - 1,
                              size));
  }
  const std::uintptr_t address =
      reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(i * element_bytes);
  // A whole struct is read in pieces of at most 16 bytes.
  const std::int64_t bytes = element_bytes * count, unit = std::min<std::int64_t>(16, bytes & -bytes);
  if ((address & static_cast<std::uintptr_t>(unit - 1)) != 0) {  // a power of two; a division takes as long as the rest
    e.fault(site,
            fmt::format("unaligned: {} of {} bytes at element {} in global memory", verb, element_bytes * count, i));
  }
  return address;
}

constexpr std::uint32_t kWord = sizeof(std::uint32_t);

}  // namespace

void check_load(const void* base, std::int64_t size, std::int64_t i, std::int64_t element_bytes, std::int64_t count,
                Site site) {
  Emulator& e = emulator();
  const std::uintptr_t address = check_place(base, size, i, element_bytes, count, site, "load");
  const std::uintptr_t end = address + static_cast<std::uintptr_t>(element_bytes * count);
  for (std::uintptr_t at = address & ~std::uintptr_t{3}; at < end; at += 4) {
    const GlobalShadow::Store* last = e.global().find(at);
    if (last == nullptr || last->block < 0) continue;
    if (last->block != e.block_number()) {
      e.fault(site,
              fmt::format("blocks: load of element {} that block number {} has stored in this launch", i, last->block));
    }
    if (unordered(last->moment, e.now())) {
      e.fault(site, fmt::format("race: load of element {} in global memory that thread {} has stored without a barrier "
                                "between them",
                                i, last->moment.thread));
    }
  }
}

void check_store(const void* base, std::int64_t size, std::int64_t i, std::int64_t element_bytes, Site site) {
  Emulator& e = emulator();
  const std::uintptr_t address = check_place(base, size, i, element_bytes, 1, site, "store");
  for (std::uintptr_t at = address; at < address + static_cast<std::uintptr_t>(element_bytes); at += 4) {
    GlobalShadow::Store& last = e.global().at(at);
    if (last.block >= 0 && last.block != e.block_number()) {
      e.fault(site,
              fmt::format("blocks: store to element {} that block number {} has stored in this launch", i, last.block));
    }
    if (last.block >= 0 && unordered(last.moment, e.now())) {
      e.fault(site, fmt::format("race: store to element {} in global memory that thread {} has stored without a "
                                "barrier between them",
                                i, last.moment.thread));
    }
    last = {e.block_number(), e.now()};
  }
}

void check_atomic(const void* base, std::int64_t size, std::int64_t i, std::int64_t element_bytes, Site site) {
  check_place(base, size, i, element_bytes, 1, site, "raise");
}

std::uint32_t take_shared(std::int64_t end, Site site) {
  Emulator& e = emulator();
  if (end > e.shared_bytes()) {
    e.fault(site, fmt::format("out of bounds: the kernel takes {} bytes of shared memory, the launch gave {}", end,
                              e.shared_bytes()));
  }
  return static_cast<std::uint32_t>(end);
}

void load_shared(std::uint32_t offset, std::uint32_t bytes, void* value, Site site) {
  Emulator& e = emulator();
  if (bytes == kWord) {  // nearly always, and most of the time of a kernel's emulation
    e.check_cell<&SharedCell::read>(offset, site, "read");
    std::memcpy(value, e.shared() + offset, kWord);
    return;
  }
  e.check_cells<&SharedCell::read>(offset, bytes, std::min(bytes, kWord), site, "read");
  std::memcpy(value, e.shared() + offset, bytes);
}

void store_shared(std::uint32_t offset, std::uint32_t bytes, const void* value, Site site) {
  Emulator& e = emulator();
  if (bytes == kWord) {
    e.check_cell<&SharedCell::write>(offset, site, "write");
    std::memcpy(e.shared() + offset, value, kWord);
    return;
  }
  e.check_cells<&SharedCell::write>(offset, bytes, std::min(bytes, kWord), site, "write");
  std::memcpy(e.shared() + offset, value, bytes);
}

void shared_out_of_bounds(std::int64_t i, std::int64_t count, Site site) {
  emulator().fault(site, fmt::format("out of bounds: element {} of {} in shared memory", i, count));
}

void copy_async(std::uint32_t offset, int bytes, const void* from, bool valid, Site site) {
  Emulator& e = emulator();
  if (offset % static_cast<std::uint32_t>(bytes) != 0) {
    e.fault(site, fmt::format("unaligned: copy_async of {} bytes to offset {}", bytes, offset));
  }
  e.check_cells<&SharedCell::begin_copy>(offset, static_cast<std::uint32_t>(bytes), bytes == 4 ? 4 : 2, site,
                                         "copy_async");
  Thread& self = e.self();
  self.copies.push_back({offset, bytes, valid ? from : nullptr, self.committed});
}

void copy_async_commit() {
  ++emulator().self().committed;
}

void copy_async_wait(int pending) {
  Emulator& e = emulator();
  Thread& self = e.self();
  // Groups are numbered by commits; copies after the last commit belong to no group yet and stay pending.
  const int landed = self.committed - pending;
  std::erase_if(self.copies, [&](const Copy& copy) {
    if (copy.group < landed) e.land(copy);
    return copy.group < landed;
  });
}

void load_matrix(std::uint32_t offset, bool transposed, std::uint32_t* r, Site site) {
  Thread& self = emulator().self();
  self.offset = offset;
  self.r = r;
  emulator().wait(transposed ? Wait::load_matrix_transposed : Wait::load_matrix, site);
}

void mma(float* c, const std::uint32_t* a, const std::uint32_t* b, Site site) {
  Thread& self = emulator().self();
  self.c = c;
  self.a = a;
  self.b = b;
  emulator().wait(Wait::mma, site);
}

void launch(const char* name, const Grid& grid, int threads, std::int64_t max_shared, void (*run)(const void*),
            const void* params) {
  if (!begin_operation(name)) return;
  note_launch(name);
  const DeviceAccess access;
  emulator().launch(name, grid, threads, max_shared, run, params);
}

}  // namespace host
}  // namespace etc::simt
