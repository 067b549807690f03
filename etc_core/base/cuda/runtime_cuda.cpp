// runtime.h on CUDA. One device, one stream and one more for copies; memory from the driver's stream-ordered pool,
// which keeps what is given back for the next call. Has not run on a device yet.
#include <cuda_runtime.h>

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/cuda/runtime_errors.h"
#include "etc_core/base/error.h"
#include "etc_core/base/local_rank.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/out_of_memory.h"

namespace etc::simt {

namespace {

struct Opened {
  int device;
  cudaStream_t stream;
};

// The first use of the device: checks that it exists and supports the kernels.
Opened open_device() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  int driver = 0;  // its version; 0: none is installed, which the runtime calls too old as well
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    fail("cuda", "no device found (no driver is installed); use --device cpu");
  }
  if (status == cudaErrorInsufficientDriver) {
    fail("cuda", "the driver is older than this build's toolkit (CUDA {}.{}): update it, or use --device cpu",
         CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  if (status != cudaSuccess || count == 0) {
    fail("cuda", "no device found ({}); use --device cpu", cudaGetErrorString(status));
  }
  // Each process on a machine takes a device of its own, as long as there are enough.
  const int chosen = local_rank() % count;
  check_cuda("cuda: choice of a device", cudaSetDevice(chosen));
  cudaDeviceProp device{};
  check_cuda("cuda: properties of the device", cudaGetDeviceProperties(&device, chosen));
  if (device.major < 8) {
    fail("cuda", "{} has compute capability {}.{}: expected at least 8.0, which has bf16 products (use --device cpu)",
         device.name, device.major, device.minor);
  }
  cudaStream_t stream = nullptr;
  check_cuda("cuda: stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  // Keep freed memory in the pool, because returning it to the driver waits for the device.
  cudaMemPool_t pool = nullptr;
  check_cuda("cuda: memory pool", cudaDeviceGetDefaultMemPool(&pool, chosen));
  std::uint64_t all = ~std::uint64_t{0};
  check_cuda("cuda: memory pool", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  return {chosen, stream};
}

// The stream. The device becomes the calling thread's, because the runtime gives every new thread device 0; an error is
// reported by the call that follows.
cudaStream_t opened() {
  static const Opened opened = open_device();
  thread_local const cudaError_t chosen = cudaSetDevice(opened.device);
  static_cast<void>(chosen);
  return opened.stream;
}

cudaStream_t stream_of(Queue queue) {
  const cudaStream_t compute = opened();
  if (queue == Queue::compute) return compute;
  static const cudaStream_t copies = [] {
    cudaStream_t stream = nullptr;
    check_cuda("cuda: stream of copies", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }();
  return copies;
}

}  // namespace

void check_cuda(const char* where, int status) {
  const auto error = static_cast<cudaError_t>(status);
  if (error != cudaSuccess) fail_in_runtime(where, status, cudaGetErrorName(error), cudaGetErrorString(error));
}

std::string device_description() {
  opened();
  int chosen = 0;
  check_cuda("cuda: the device", cudaGetDevice(&chosen));
  cudaDeviceProp device{};
  check_cuda("cuda: properties of the device", cudaGetDeviceProperties(&device, chosen));
  return fmt::format("{} (compute capability {}.{}, CUDA {}.{})", device.name, device.major, device.minor,
                     CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

void* stream() {
  return opened();
}

void* allocate(std::int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMallocAsync(&memory, static_cast<std::size_t>(bytes), opened());
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // clear the error: the device still works
    throw OutOfMemory(
        fmt::format("memory: cannot allocate {} bytes of device memory; in use:\n{}(shorter inputs or smaller batches "
                    "need less)",
                    bytes, memory_ledger::table()));
  }
  check_cuda("memory", status);
  return memory;
}

void release(void* memory) {
  // Destructors call this, so errors are ignored: the call that lost a device has already reported it.
  static_cast<void>(cudaFreeAsync(memory, opened()));
}

void wait() {
  check_cuda("waiting for the device", cudaStreamSynchronize(opened()));
}

std::int64_t memory_capacity() {
  opened();
  std::size_t unused = 0, total = 0;
  check_cuda("cuda: memory of the device", cudaMemGetInfo(&unused, &total));
  return static_cast<std::int64_t>(total);
}

void* allocate_pinned(std::int64_t bytes) {
  opened();
  void* memory = nullptr;
  check_cuda("pinned memory", cudaMallocHost(&memory, static_cast<std::size_t>(bytes)));
  return memory;
}

void queue_copy(Queue queue, void* to, const void* from, std::int64_t bytes) {
  check_cuda("copy", cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_of(queue)));
}

Event make_event() {
  opened();
  cudaEvent_t event = nullptr;
  check_cuda("event", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

void record(Event event, Queue queue) {
  check_cuda("event", cudaEventRecord(static_cast<cudaEvent_t>(event), stream_of(queue)));
}

void wait_on_host(Event event) {
  check_cuda("waiting for a copy", cudaEventSynchronize(static_cast<cudaEvent_t>(event)));
}

void wait_on_queue(Queue queue, Event event) {
  check_cuda("event", cudaStreamWaitEvent(stream_of(queue), static_cast<cudaEvent_t>(event), 0));
}

void copy_within(void* to, const void* from, std::int64_t bytes) {
  if (bytes == 0) return;
  check_cuda("copy on the device",
             cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, opened()));
}

void fill_zero(void* memory, std::int64_t bytes) {
  if (bytes == 0) return;
  check_cuda("fill", cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), opened()));
}

}  // namespace etc::simt
