// Messages between GPUs with NCCL: only sends and receives, none of its reductions, whose sums depend on the number of
// processes. The hosts' communicator distributes the id that NCCL needs to find the other processes. This has been
// compiled but not run: that takes two GPUs.
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/error.h"
#include "etc_core/comm/device_link.h"

namespace etc {

namespace {

void check(ncclResult_t code, const char* call) {
  if (code != ncclSuccess) fail("NCCL", "{}: {}", call, ncclGetErrorString(code));
}

// An event that is recorded once.
DeviceLink::Mark mark_on(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  simt::check_cuda("NCCL: event", cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  DeviceLink::Mark mark(event, [](void* old) { cudaEventDestroy(static_cast<cudaEvent_t>(old)); });
  simt::check_cuda("NCCL: event", cudaEventRecord(event, stream));
  return mark;
}

// All messages of a round form one group, so that no message waits for another one of the same process.
class Group {
 public:
  Group() { check(ncclGroupStart(), "ncclGroupStart"); }
  ~Group() {
    if (open_) ncclGroupEnd();
  }
  void end() {
    open_ = false;
    check(ncclGroupEnd(), "ncclGroupEnd");
  }

 private:
  bool open_ = true;
};

class NcclLink : public DeviceLink {
 public:
  explicit NcclLink(Communicator& processes) {
    ncclUniqueId id{};
    if (processes.first()) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::string all_id = from_first(processes, {reinterpret_cast<const char*>(&id), sizeof id});
    std::memcpy(&id, all_id.data(), sizeof id);
    simt::check_cuda("NCCL: stream", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(ncclCommInitRank(&nccl_, processes.size(), id, processes.rank()), "ncclCommInitRank");
  }

  // After an error the other processes may never reach this point: abort instead of waiting.
  ~NcclLink() override {
    if (std::uncaught_exceptions() > 0) {
      ncclCommAbort(nccl_);
    } else {
      cudaStreamSynchronize(stream_);
      ncclCommDestroy(nccl_);
    }
    cudaStreamDestroy(stream_);
  }

  Mark mark() override { return mark_on(static_cast<cudaStream_t>(simt::stream())); }

  Mark carry(const Mark& after, std::span<const Outgoing> out, std::span<const Incoming> in) override {
    simt::check_cuda("NCCL: order", cudaStreamWaitEvent(stream_, static_cast<cudaEvent_t>(after.get()), 0));
    Group group;
    for (const Outgoing& message : out) {
      check(ncclSend(message.data, static_cast<std::size_t>(message.bytes), ncclChar, message.to, nccl_, stream_),
            "ncclSend");
    }
    for (const Incoming& message : in) {
      check(ncclRecv(message.data, static_cast<std::size_t>(message.bytes), ncclChar, message.from, nccl_, stream_),
            "ncclRecv");
    }
    group.end();
    return mark_on(stream_);
  }

  bool over(const Mark& mark) override {
    const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(mark.get()));
    if (status == cudaSuccess) return true;
    if (status != cudaErrorNotReady) simt::check_cuda("NCCL: messages on their way", status);
    ncclResult_t fault = ncclSuccess;
    check(ncclCommGetAsyncError(nccl_, &fault), "ncclCommGetAsyncError");
    check(fault, "messages on their way");
    return false;
  }

 private:
  ncclComm_t nccl_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// The machine and the PCI bus id of this process's device.
std::string device_place(const Communicator& processes) {
  int device = 0;
  char place[32] = {};
  simt::check_cuda("NCCL: the process's device", cudaGetDevice(&device));
  simt::check_cuda("NCCL: the process's device", cudaDeviceGetPCIBusId(place, sizeof place, device));
  return processes.host_of(processes.rank()) + " " + place;
}

}  // namespace

std::unique_ptr<DeviceLink> open_device_link(Communicator& processes) {
  std::vector<std::string> places = processes.gather(device_place(processes));
  std::sort(places.begin(), places.end());
  if (std::adjacent_find(places.begin(), places.end()) != places.end()) return nullptr;
  return std::make_unique<NcclLink>(processes);
}

}  // namespace etc
