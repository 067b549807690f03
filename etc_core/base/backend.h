// A backend: everything the rest of the program knows of a device, in one place.
//
// Its name and what to do where it is missing are in known_devices.h, since a program without it says so; its kernels
// go into the slots of the operators (kernel_slot.h) when it is opened. The CPU's is always there.
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
  ComputeType fastest = ComputeType::fp32;  // of large products; not looked at for the CPU, which is measured
  bool keeps_bf16 = false;                  // see keeps_bf16()
  DeviceMemory memory;                      // not the CPU's
  DeviceState state;                        // not the CPU's
  // Fills the slots and makes sure a device is there that can do what the kernels need; throws Error saying what is
  // missing. Returns the device in words, "NVIDIA H100 80GB HBM3 (compute capability 9.0, …)". Not the CPU's.
  std::string (*open)() = nullptr;
};

// What a program was built with; called by its main before open_device() (nn/backends.h). Again replaces.
void add_backend(const Backend& backend);

// What was added; null: nothing.
const Backend* find_backend(Device device);

// Whether a device that multiplies in `compute` reads and writes arrays of bf16: there what only products and attention
// read is kept in it, at half the memory and without a pass that rounds.
bool keeps_bf16(Device device, ComputeType compute);

// By a backend that fills its slots, once it was added: from here on its memory and state may be asked for.
void set_backend_ready(Device device);

// What is ready; null: nothing.
const Backend* find_ready_backend(Device device);

}  // namespace etc
