// Sends bytes from the memory of one process's device to that of another's, without going through the hosts.
// Implemented with NCCL (nccl_link.cpp); device_rounds.h decides when messages are sent.
#pragma once

#include <memory>
#include <span>

#include "etc_core/comm/communicator.h"

namespace etc {

class DeviceLink : NotCopied {
 public:
  // A position in the sequence of a device's work, like an event on a stream.
  using Mark = std::shared_ptr<void>;

  virtual ~DeviceLink() = default;

  // The end of the work that the device has been given so far.
  virtual Mark mark() = 0;

  // Starts messages beside the device's other work, once it has passed `after`; returns the mark of their end. Pointers
  // are to device memory. A collective call, in the same order in all processes: for each message that one process
  // sends, its receiver lists a matching one, in the same order with the same sizes. A process does not send to itself;
  // data is never null.
  virtual Mark carry(const Mark& after, std::span<const Outgoing> out, std::span<const Incoming> in) = 0;

  // Whether the device has passed the mark; does not wait. Throws Error when a message in flight has failed.
  virtual bool over(const Mark& mark) = 0;
};

// Implements Communicator::link_devices() in a program that is linked with MPI: NCCL, or null without it
// (unlinked.cpp). A collective call; the devices must be open. Null in all processes when two of them share a device.
std::unique_ptr<DeviceLink> open_device_link(Communicator& processes);

}  // namespace etc
