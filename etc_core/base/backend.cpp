#include "etc_core/base/backend.h"

#include <array>

#include "etc_core/base/cpu_features.h"

namespace etc {

namespace {

struct Entry {
  Backend backend;
  bool added = false, ready = false;
};

std::array<Entry, kDeviceCount> with_cpu() {
  std::array<Entry, kDeviceCount> entries;
  Entry& cpu = entries[static_cast<std::size_t>(Device::cpu)];
  cpu.backend.device = Device::cpu;
  cpu.backend.offers = cpu_offers;
  cpu.backend.keeps_bf16 = true;
  cpu.added = true;
  return entries;
}

Entry& entry_of(Device device) {
  static std::array<Entry, kDeviceCount> entries = with_cpu();
  return entries[static_cast<std::size_t>(device)];
}

}  // namespace

void add_backend(const Backend& backend) {
  Entry& entry = entry_of(backend.device);
  entry.backend = backend;
  entry.added = true;
}

const Backend* find_backend(Device device) {
  const Entry& entry = entry_of(device);
  return entry.added ? &entry.backend : nullptr;
}

bool keeps_bf16(Device device, ComputeType compute) {
  const Backend* const backend = find_backend(device);
  return backend != nullptr && backend->keeps_bf16 && compute == ComputeType::bf16;
}

void set_backend_ready(Device device) {
  entry_of(device).ready = true;
}

const Backend* find_ready_backend(Device device) {
  const Entry& entry = entry_of(device);
  return entry.ready ? &entry.backend : nullptr;
}

}  // namespace etc
