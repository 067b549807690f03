// Which devices this program can compute on: the CPU always, others as their backends were added.
#pragma once

#include <string>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"

namespace etc {

// Fills the slots and makes sure a device is there that can do what the kernels need; throws Error saying what is
// missing. Returns the device in words, "NVIDIA H100 80GB HBM3 (compute capability 9.0, CUDA 13.0)".
using OpenBackend = std::string (*)();

// What a program was built with; called by its main before open_device().
void add_backend(Device device, OpenBackend open);

// A device ready to compute, and what it is.
struct OpenedDevice {
  Device device = Device::cpu;
  std::string description;  // the processor's instruction set, or what the backend says
};

// name: "cpu"; "cuda", which throws Error where there is none; "auto": cuda, or else the CPU, and the log says why.
// Throws UsageError for other names. The CPU's kernels are registered in any case.
OpenedDevice open_device(const std::string& name);

// Whether large products can be computed in this type there.
bool device_offers(Device device, ComputeType type);

// What --compute means on a device: "fp32", "bf16", "int8", or "auto", which measures (cuda: takes bf16) and says in
// the log what it took. Throws UsageError where the device does not offer it. Needs registered kernels.
ComputeType chosen_compute(const std::string& name, Device device);

}  // namespace etc
