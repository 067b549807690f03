#include "etc_core/base/process_memory.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "etc_core/base/large_blocks.h"

namespace etc {

namespace {

std::int64_t resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  if (!(std::ifstream("/proc/self/statm") >> pages >> resident)) return 0;
  return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

void release_unused_memory() {
  large_blocks::release_kept();
  ::malloc_trim(0);
}

std::int64_t bytes_beside_buffers() {
  ::malloc_trim(0);
  // Kept blocks are not in use now, but later buffers will be made of them.
  return std::max<std::int64_t>(0, resident_bytes() - memory_ledger::report().total - large_blocks::report().kept);
}

ProcessMemory measured_memory(Device device) {
  ProcessMemory memory{memory_ledger::report(), 0};
  if (device != Device::cpu) return memory;
  memory.beside = std::max<std::int64_t>(0, memory_ledger::process_peak_bytes() - memory.buffers.peak);
  return memory;
}

bool reset_process_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

std::string memory_text(const ProcessMemory& memory) {
  constexpr double kGigabyte = 1e9, kMegabyte = 1e6;
  const bool large = memory.peak() >= 1000 * static_cast<std::int64_t>(kMegabyte);
  const auto number = [&](std::int64_t bytes) {
    return fmt::format("{:.{}f}", static_cast<double>(bytes) / (large ? kGigabyte : kMegabyte), large ? 2 : 1);
  };
  std::string text = fmt::format("{} {}", number(memory.peak()), large ? "GB" : "MB");
  const char* separator = ": ";
  const auto add = [&](const char* name, std::int64_t bytes) {
    if (bytes == 0) return;
    text += fmt::format("{}{} {}", separator, name, number(bytes));
    separator = ", ";
  };
  for (int p = 0; p < kPurposeCount; ++p) {
    add(purpose_name(static_cast<Purpose>(p)), memory.buffers.at_peak[static_cast<std::size_t>(p)]);
  }
  add("program", memory.beside);
  return text;
}

}  // namespace etc
