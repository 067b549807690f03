// Limits on processors and memory by control groups, read from simulated /proc folders and from the process's own.
#include "etc_core/base/machine_share.h"

#include <sched.h>

#include "etc_core/base/device_state.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;

namespace {

namespace fs = std::filesystem;

// A simulated process: its /proc files `cgroup` and `mountinfo`, and files of its groups.
class Process {
 public:
  Process(const std::string& groups, const std::string& mounts) {
    write("proc/cgroup", groups);
    write("proc/mountinfo", mounts);
  }

  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((folder_ / file).parent_path());
    write_file_atomically(folder_ / file, text);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  fs::path proc() const { return folder_ / "proc"; }

  // Adds a line to mountinfo: group `root` is mounted at `point`.
  void mount(const std::string& root, const std::string& point, const std::string& type, const std::string& options) {
    mounts_ +=
        "31 23 0:28 " + root + " " + path(point) + " rw,relatime shared:5 - " + type + " cgroup " + options + "\n";
    write("proc/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + mounts_);
  }

 private:
  test::TemporaryFolder folder_;
  std::string mounts_;
};

}  // namespace

TEST_CASE("the smallest limit of nested groups of version 2 counts", "[base]") {
  Process process("0::/jobs/mine\n", "");
  CHECK(!group_memory_limit(process.proc()));
  CHECK(!group_processor_limit(process.proc()));
  process.mount("/", "v2", "cgroup2", "rw");
  process.write("v2/jobs/mine/memory.max", "max\n");
  process.write("v2/jobs/mine/cpu.max", "max 100000\n");
  CHECK(!group_memory_limit(process.proc()));
  CHECK(!group_processor_limit(process.proc()));
  process.write("v2/jobs/memory.max", "380000000\n");
  process.write("v2/jobs/cpu.max", "150000 100000\n");
  CHECK(group_memory_limit(process.proc()) == 380'000'000);
  CHECK(group_processor_limit(process.proc()) == 1.5);
  process.write("v2/jobs/mine/memory.max", "200000000\n");
  process.write("v2/jobs/mine/cpu.max", "50000 100000\n");
  CHECK(group_memory_limit(process.proc()) == 200'000'000);
  CHECK(group_processor_limit(process.proc()) == 0.5);
}

TEST_CASE("groups of version 1 are found in the hierarchy of their controller", "[base]") {
  Process process("4:memory:/a/b\n3:cpuset:/\n1:cpu,cpuacct:/c\n0::/\n", "");
  process.mount("/", "cpuset", "cgroup", "rw,cpuset");
  process.mount("/", "memory", "cgroup", "rw,memory");
  process.mount("/", "cpu", "cgroup", "rw,cpu,cpuacct");
  process.mount("/", "unified", "cgroup2", "rw");
  process.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  process.write("memory/a/memory.limit_in_bytes", "1000000000\n");
  process.write("memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  process.write("cpu/cpu.cfs_quota_us", "-1\n");
  process.write("cpu/cpu.cfs_period_us", "100000\n");
  CHECK(group_memory_limit(process.proc()) == 1'000'000'000);
  CHECK(!group_processor_limit(process.proc()));
  process.write("cpu/c/cpu.cfs_quota_us", "300000\n");
  process.write("cpu/c/cpu.cfs_period_us", "100000\n");
  CHECK(group_processor_limit(process.proc()) == 3.0);
}

TEST_CASE("a container that sees its own group as the root is limited by it", "[base]") {
  Process process("4:memory:/docker/1234\n0::/../other\n", "");
  process.mount("/docker/1234", "with\\040blank", "cgroup", "rw,memory");
  process.write("with blank/memory.limit_in_bytes", "500000000\n");
  CHECK(group_memory_limit(process.proc()) == 500'000'000);
  process.mount("/", "v2", "cgroup2", "rw");
  process.write("v2/memory.max", "400000000\n");
  CHECK(group_memory_limit(process.proc()) == 400'000'000);
}

TEST_CASE("processors are those of the affinity, and memory is what the host has or less", "[base]") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(usable_processors() >= 1);
  CHECK(usable_processors() <= CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(usable_processors() == 1);
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(usable_memory() > 0);
  CHECK(memory_capacity(Device::cpu) == usable_memory());
}
