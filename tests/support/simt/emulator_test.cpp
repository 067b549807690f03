// The emulator detects the documented faults: each test contains one bug, and a correct variant that must pass.
#include "tests/support/simt/emulator.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/base/cuda/simt.h"
#include "tests/support/catch.h"

using namespace etc;
using Catch::Matchers::Contains;

namespace {

// Runs a lambda as a kernel.
template <int kCount, std::int64_t kShared = 0>
struct Kernel : simt::BlockOf<kCount, kShared> {
  struct Params {
    void (*body)(const simt::Span<float>&);
    simt::Span<float> memory;
  };
  static const char* name() { return "seeded"; }
  static void run(const Params& params) { params.body(params.memory); }
};

// A block of two warps over 64 floats, with 1,024 bytes of shared memory.
std::vector<float> run(void (*body)(const simt::Span<float>&), simt::Grid grid = {1, 1, 1, 1024}) {
  std::vector<float> memory(64);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  simt::launch<Kernel<64>>(grid, {body, {memory.data(), 64}}, nullptr);
  return memory;
}

simt::SharedTile<float> tile_of(int count) {
  simt::SharedArena arena;
  return arena.take<float>(count);
}

// Starts copying element i of the memory to element i of the tile; element 13 is replaced by zero.
void copy(const simt::Span<float>& m, const simt::SharedTile<float>& tile, int i) {
  simt::copy_async<4>(tile, i, simt::Span<const float>{m.data, m.size}, i, i != 13);
  simt::copy_async_commit();
}

}  // namespace

TEST_CASE("threads exchange values through shared memory and a barrier", "[simt]") {
  const std::vector<float> memory = run([](const simt::Span<float>& m) {
    const int t = simt::thread_index();
    const auto tile = tile_of(64);
    tile.store(t, simt::load(m, t));
    simt::sync_block();
    simt::store(m, t, tile.load(63 - t));
  });
  for (std::size_t i = 0; i < memory.size(); ++i) CHECK(memory[i] == static_cast<float>(63 - i));
}

TEST_CASE("a barrier that not every thread reaches is found", "[simt]") {
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      if (simt::thread_index() < 40) simt::sync_block();
                    }),
                    Contains("divergence") && Contains("have ended"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      if (simt::warp_index() == 0) simt::sync_block();
                    }),
                    Contains("divergence") && Contains("other warps of the block have ended"));
  // Outside the macro, because the macro would put both barriers on one source line.
  const auto two_barriers = [](const simt::Span<float>&) {
    if (simt::warp_index() == 0) {
      simt::sync_block();
    } else {
      simt::sync_block();
    }
  };
  CHECK_THROWS_WITH(run(two_barriers),
                    Contains("divergence: this thread waits at a sync_block, another at one in emulator_test.cpp"));
}

TEST_CASE("a warp whose lanes do not all take part is found", "[simt]") {
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      if (simt::lane_index() < 16) simt::shuffle(1.0f, 0);
                    }),
                    Contains("lanes of this warp wait at shuffle, 16 have ended"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      if (simt::lane_index() < 16) simt::warp_index();
                    }),
                    Contains("lanes of this warp wait at shuffle, 16 have ended"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      if (simt::lane_index() < 16) {
                        simt::sync_warp();
                      } else {
                        simt::any(true);
                      }
                    }),
                    Contains("this lane waits at any, another of its warp at sync_warp"));
}

TEST_CASE("accesses outside a span or tile are found", "[simt]") {
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) { simt::load(m, simt::thread_index() + 1); }),
                    Contains("thread 63") && Contains("out of bounds: load of element 64 of 64"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) { simt::store(m, simt::thread_index() - 1, 0.0f); }),
                    Contains("out of bounds: store of element -1 of 64"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) { tile_of(32).store(simt::thread_index(), 0.0f); }),
                    Contains("out of bounds: element 32 of 32 in shared memory"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) { tile_of(1000); }),
                    Contains("the kernel takes 4000 bytes of shared memory, the launch gave 1024"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) {
                      simt::raise({nullptr, m.size}, 0, 1);
                    }),
                    Contains("null span"));
}

TEST_CASE("unaligned accesses are found", "[simt]") {
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) {
                      if (simt::thread_index() != 5) return;
                      simt::copy_async<16>(tile_of(64), 0, simt::Span<const float>{m.data, m.size}, 1, true);
                    }),
                    Contains("thread 5") && Contains("unaligned: load of 16 bytes at element 1"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) {
                      if (simt::thread_index() > 0) return;
                      simt::copy_async<16>(tile_of(64), 2, simt::Span<const float>{m.data, m.size}, 0, true);
                    }),
                    Contains("unaligned: copy_async of 16 bytes to offset 8"));
}

TEST_CASE("reads of uninitialised shared memory are found", "[simt]") {
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      const auto tile = tile_of(64);
                      if (simt::thread_index() < 63) tile.store(simt::thread_index(), 1.0f);
                      simt::sync_block();
                      tile.load(simt::thread_index());
                    }),
                    Contains("thread 63") && Contains("uninitialised: read of shared memory at offset 252"));
}

TEST_CASE("a read and a write of one place without a barrier between them are found", "[simt]") {
  // A write, then a read by another thread of the warp, and by another warp.
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      const auto tile = tile_of(64);
                      tile.store(simt::thread_index(), 1.0f);
                      tile.load(simt::thread_index() ^ 1);
                    }),
                    Contains("race") || Contains("uninitialised"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      const auto tile = tile_of(64);
                      tile.store(simt::thread_index(), 1.0f);
                      simt::sync_warp();
                      tile.load((simt::thread_index() + 32) % 64);
                    }),
                    Contains("race") || Contains("uninitialised"));
  // A read, then a write by another warp: no value reveals the race.
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      const auto tile = tile_of(64);
                      tile.store(simt::thread_index(), 1.0f);
                      simt::sync_block();
                      tile.load(0);
                      if (simt::thread_index() == 63) tile.store(0, 2.0f);
                    }),
                    Contains("race: write of shared memory at offset 0"));
  // A read by the whole warp, then a write by one of its lanes.
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) {
                      const auto tile = tile_of(64);
                      tile.store(simt::thread_index(), 1.0f);
                      simt::sync_block();
                      if (simt::warp_index() == 1) return;
                      tile.load(0);
                      if (simt::lane_index() == 31) tile.store(0, 2.0f);
                    }),
                    Contains("race: write of shared memory at offset 0"));
  run([](const simt::Span<float>&) {
    const auto tile = tile_of(64);
    tile.store(simt::thread_index(), 1.0f);
    simt::sync_warp();
    tile.load(simt::thread_index() ^ 1);
    simt::sync_block();
    tile.store(63 - simt::thread_index(), 2.0f);
  });
}

TEST_CASE("two writes of one place without a barrier between them are found", "[simt]") {
  CHECK_THROWS_WITH(run([](const simt::Span<float>&) { tile_of(64).store(simt::thread_index() / 2, 1.0f); }),
                    Contains("race: write of shared memory at offset 0 that thread 0 touches"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) { simt::store(m, simt::thread_index() % 32, 1.0f); }),
                    Contains("race: store to element 0 in global memory that thread 0 has stored"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) {
                      simt::store(m, simt::thread_index(), 1.0f);
                      simt::load(m, 0);
                    }),
                    Contains("race: load of element 0 in global memory that thread 0 has stored"));
}

TEST_CASE("two blocks that store to one global address are found", "[simt]") {
  const auto body = [](const simt::Span<float>& m) {
    if (simt::thread_index() < 8) simt::store(m, 7 * simt::block_x() + simt::thread_index(), 1.0f);
  };
  run(body);
  CHECK_THROWS_WITH(run(body, {2, 1, 1, 0}),
                    Contains("block (1, 0, 0)") && Contains("store to element 7 that block number 0 has stored"));
  CHECK_THROWS_WITH(run(
                        [](const simt::Span<float>& m) {
                          if (simt::thread_index() > 0) return;
                          if (simt::block_y() == 0) simt::store(m, 3, 1.0f);
                          if (simt::block_y() == 1) simt::load(m, 3);
                        },
                        {1, 2, 1, 0}),
                    Contains("load of element 3 that block number 0 has stored"));
  // Values stored by the previous launch may be read.
  run([](const simt::Span<float>& m) { simt::load(m, 3); }, {2, 1, 1, 0});
}

TEST_CASE("copies land at their wait and not before", "[simt]") {
  const std::vector<float> memory = run([](const simt::Span<float>& m) {
    const auto tile = tile_of(64);
    copy(m, tile, simt::thread_index());
    simt::copy_async_wait<0>();
    simt::sync_block();
    simt::store(m, simt::thread_index(), tile.load(63 - simt::thread_index()));
  });
  for (std::size_t i = 0; i < memory.size(); ++i) CHECK(memory[i] == (i == 50 ? 0.0f : static_cast<float>(63 - i)));
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) {
                      const auto tile = tile_of(64);
                      copy(m, tile, simt::thread_index());
                      simt::sync_block();
                      tile.load(simt::thread_index());
                    }),
                    Contains("while a copy_async of thread 0 is under way"));
  // After waiting for all but the newest group, the newest is still pending.
  CHECK_THROWS_WITH(
      run([](const simt::Span<float>& m) {
        const auto tile = tile_of(128);
        copy(m, tile, simt::thread_index());
        simt::copy_async<4>(tile, 64 + simt::thread_index(), simt::Span<const float>{m.data, m.size}, 0, true);
        simt::copy_async_commit();
        simt::copy_async_wait<1>();
        tile.load(simt::thread_index());
        tile.load(64 + simt::thread_index());
      }),
      Contains("at offset 256 while a copy_async of thread 0 is under way"));
  // The copy is complete for the thread that waited, but other threads read without a barrier.
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) {
                      const auto tile = tile_of(64);
                      copy(m, tile, simt::thread_index());
                      simt::copy_async_wait<0>();
                      if (simt::thread_index() == 40) tile.load(3);
                    }),
                    Contains("race: read of shared memory at offset 12 that thread 3 touches"));
  CHECK_THROWS_WITH(run([](const simt::Span<float>& m) { copy(m, tile_of(64), simt::thread_index()); }),
                    Contains("ended with a copy_async it never waited for"));
}

TEST_CASE("launches beyond a device's limits are refused", "[simt]") {
  const auto nothing = [](const simt::Span<float>&) {};
  CHECK_THROWS_WITH(simt::launch<Kernel<1056>>({1, 1, 1, 0}, {nothing, {}}, nullptr),
                    Contains("1056 threads, at most 1024 fit"));
  CHECK_THROWS_WITH(run(nothing, {1, 65536, 1, 0}), Contains("grid y of 65536, at most 65535"));
  CHECK_THROWS_WITH(run(nothing, {1, 1, 65536, 0}), Contains("grid z of 65536, at most 65535"));
  CHECK_THROWS_WITH(run(nothing, {std::int64_t{1} << 31, 1, 1, 0}), Contains("grid x of 2147483648"));
  CHECK_THROWS_WITH(run(nothing, {1, 1, 1, 49153}), Contains("49153 bytes of shared memory"));
  CHECK_THROWS_WITH((simt::launch<Kernel<32, 163 * 1024 + 1>>({1, 1, 1, 0}, {nothing, {}}, nullptr)),
                    Contains("a block has 166912"));
  simt::launch<Kernel<1024, 100000>>({1, 1, 1, 100000}, {nothing, {}}, nullptr);
  const std::int64_t before = simt::emulator_counts().blocks;
  run(nothing, {0, 1, 1, 0});
  CHECK(simt::emulator_counts().blocks == before);
  run(nothing, {3, 5, 2, 0});
  CHECK(simt::emulator_counts().blocks == before + 30);
}

TEST_CASE("device memory is charged to the ledger while it lives", "[simt]") {
  const auto held = [] { return memory_ledger::report().current[static_cast<std::size_t>(Purpose::labels)]; };
  simt::provide_memory();
  const std::int64_t before = held();
  {
    Bytes first = simt::device_bytes(1000, Purpose::labels);
    CHECK(held() == before + 1024);
    Bytes second(std::move(first));
    CHECK(held() == before + 1024);
    CHECK(reinterpret_cast<std::uintptr_t>(second.data()) % 256 == 0);
    first = simt::device_bytes(500, Purpose::labels);
    CHECK(held() == before + 1536);
    CHECK(simt::device_bytes(0, Purpose::labels).data() == nullptr);
  }
  CHECK(held() == before);
}

TEST_CASE("the host cannot touch device memory", "[simt]") {
  simt::provide_memory();
  Bytes bytes = simt::device_bytes(sizeof(float), Purpose::scratch);
  auto* const number = static_cast<float*>(bytes.data());
  const float given = 4.5f;
  simt::copy_to_device(number, &given, sizeof given);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    *number = 1.0f;
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
  float got = 0;
  simt::copy_to_host(&got, number, sizeof got);
  CHECK(got == given);
}
