#include "tasks/cli/memory_option.h"

#include "etc_core/base/byte_size.h"
#include "etc_core/base/log.h"
#include "etc_core/base/machine_share.h"
#include "etc_core/base/process_memory.h"

namespace etc::cli {

namespace {
constexpr const char* kName = "--memory-limit";
}

void add_memory_option(const Command& command, std::string& limit, const std::string& help) {
  command.option(kName, limit, "memory the process may take, such as 8GB: " + help);
}

std::int64_t take_memory_limit(const std::string& limit, Device device) {
  if (limit.empty()) return 0;
  const std::int64_t bytes = parse_byte_size(limit, kName);
  if (device == Device::cpu) limit_usable_memory(bytes);
  return bytes;
}

void log_peak_memory(Device device) {
  log::info("peak memory {}", memory_text(measured_memory(device)));
}

}  // namespace etc::cli
