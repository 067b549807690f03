// The devices on which this program can compute: always the CPU, others if their backends have been added.
#pragma once

#include <string>
#include <vector>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"

namespace etc {

// The values of --device: "cpu", the backends with code in this program, "auto".
std::vector<std::string> device_choices();

// The text of --help about them.
std::string device_help();

// Throws UsageError ("where: expected …, got …") unless name is one of them.
void require_device_choice(const std::string& where, const std::string& name);

// Registers every CPU kernel an encoder needs (sparse and dense). May be called repeatedly.
void register_cpu_backend();

// A device that is ready to compute, and its description.
struct OpenedDevice {
  Device device = Device::cpu;
  std::string description;  // the processor's instruction set, or the backend's description
};

// name: "cpu"; the name of a backend, which throws Error if there is no device; "auto": the first backend that opens,
// otherwise the CPU, with the reason in the log. Throws UsageError for other names. The CPU's kernels are always
// registered.
OpenedDevice open_device(const std::string& name);

// Whether the device can compute large products in this type; false if its backend is missing.
bool device_offers(Device device, ComputeType type);

// The number type that --compute selects on a device: "fp32", "bf16", "int8", or "auto". "auto" takes the backend's
// choice, on the CPU the fastest measured type, and logs the choice. Throws UsageError if the device does not offer the
// type. Needs registered kernels.
ComputeType chosen_compute(const std::string& name, Device device);

// The same with the number type of running scores, int32 or fp16 (--scores); UsageError where the device has no fp16.
InferenceTypes chosen_types(const std::string& compute, const std::string& scores, Device device);

}  // namespace etc
