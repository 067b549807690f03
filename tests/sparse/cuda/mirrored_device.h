// Puts operators into the cuda slots that take host memory: inputs are copied to the device, results back. So the cases
// of the CPU's tests run on a device as they are.
#pragma once

namespace etc::test {

void register_mirrored_cuda_kernels();

}  // namespace etc::test
