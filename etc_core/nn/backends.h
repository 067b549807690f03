// Which devices this program can compute on: the CPU always, others as their backends were added.
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/backend.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"

namespace etc {

// The words --device knows: "cpu", the backends there is code for, "auto".
std::vector<std::string> device_choices();

// What --help says of them.
std::string device_help();

// Throws UsageError ("where: expected …, got …") unless name is one of them.
void require_device_choice(const std::string& where, const std::string& name);

// Registers every CPU kernel an encoder needs (sparse and dense). Any number of calls.
void register_cpu_backend();

// A device ready to compute, and what it is.
struct OpenedDevice {
  Device device = Device::cpu;
  std::string description;  // the processor's instruction set, or what the backend says
};

// name: "cpu"; a backend's, which throws Error where there is none; "auto": the first backend that opens, or else the
// CPU, and the log says why. Throws UsageError for other names. The CPU's kernels are registered in any case.
OpenedDevice open_device(const std::string& name);

// Whether large products can be computed in this type there; never without the device's backend.
bool device_offers(Device device, ComputeType type);

// What --compute means on a device: "fp32", "bf16", "int8", or "auto", which takes what the backend says, or on the CPU
// measures, and says in the log what it took. Throws UsageError where the device does not offer it. Needs registered
// kernels.
ComputeType chosen_compute(const std::string& name, Device device);

// The same with the number type of running scores, int32 or fp16 (--scores); UsageError where the device has no fp16.
InferenceTypes chosen_types(const std::string& compute, const std::string& scores, Device device);

}  // namespace etc
