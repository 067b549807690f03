// A backend: everything the rest of the program knows of a device, in one place.
//
// The device's name and the hint for programs built without it are in known_devices.h. Its kernels are put into the
// operators' slots (kernel_slot.h) when the backend is opened. The CPU backend is always available.
#pragma once

#include <string>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device_memory.h"
#include "etc_core/base/device_state.h"

namespace etc {

struct Backend {
  Device device = Device::cpu;
  bool (*offers)(ComputeType) = nullptr;    // whether large products can be computed in this type there
  bool joins_in_bf16 = false;               // whether attention in bf16 takes tables of keys, products and values
  ComputeType fastest = ComputeType::fp32;  // for large products; not read for the CPU, where it is measured
  bool keeps_bf16 = false;                  // see keeps_bf16()
  DeviceMemory memory;                      // not set for the CPU
  DeviceState state;                        // not set for the CPU
  // Fills the slots and checks that a device exists that supports the kernels; throws Error saying what is missing.
  // Returns a description of the device, "NVIDIA H100 80GB HBM3 (compute capability 9.0, …)". Not set for the CPU.
  std::string (*open)() = nullptr;
};

// Adds a backend the program was built with, replacing one of the same device. Called by main before open_device()
// (nn/backends.h).
void add_backend(const Backend& backend);

// The backend that was added for a device; null: none.
const Backend* find_backend(Device device);

// Whether a device that multiplies in `compute` reads and writes bf16 arrays. Then tensors that only products and
// attention read are stored in bf16, with half the memory and no rounding pass.
bool keeps_bf16(Device device, ComputeType compute);

// Called by an added backend once its slots are filled: from here on its memory and state may be used.
void set_backend_ready(Device device);

// The backend that is ready for a device; null: none.
const Backend* find_ready_backend(Device device);

}  // namespace etc
