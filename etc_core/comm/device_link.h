// What carries bytes from the memory of one process's device to that of another's, without the hosts between them.
// NCCL does (nccl_link.cpp); device_rounds.h says when.
#pragma once

#include <memory>
#include <span>

#include "etc_core/comm/communicator.h"

namespace etc {

class DeviceLink : NotCopied {
 public:
  // A moment in what a device has to do.
  using Mark = std::shared_ptr<void>;

  virtual ~DeviceLink() = default;

  // The end of the work that the device has been given so far.
  virtual Mark mark() = 0;

  // Begins messages beside the device's other work, once that is `after`; the result is their end. Pointers are the
  // device's. Calls of all processes in the same order, each with its part: what one sends to another, that one expects,
  // in the same order with the same sizes. None goes to the process itself; data is never null.
  virtual Mark carry(const Mark& after, std::span<const Outgoing> out, std::span<const Incoming> in) = 0;

  // Whether that moment has passed; does not wait. Throws Error when something on its way has failed.
  virtual bool over(const Mark& mark) = 0;
};

// What Communicator::link_devices() is in a program that is linked with MPI: NCCL, or null without it (unlinked.cpp).
// A call of all processes, whose devices are open. Null in all of them when two processes share a device.
std::unique_ptr<DeviceLink> open_device_link(Communicator& processes);

}  // namespace etc
