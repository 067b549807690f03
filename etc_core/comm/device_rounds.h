// Rounds of messages between devices that may be started in any order, over a link that wants one order.
//
// A device works off its messages one after the other, and a message waits for its other side. So if one process began
// with round a and another with round b, both would wait for ever. Therefore
//
//   every process    starts a round ─▶ tells the others, and which of its messages have content    (on the hosts)
//   the first one    once all have told it of a round: says that this round is next                (on the hosts)
//   every process    gives its device the rounds in that order                                     (device to device)
//
// A round that is said to be next has been started everywhere, so no device waits for a host that waits for it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "etc_core/base/device.h"
#include "etc_core/comm/device_link.h"

namespace etc {

class DeviceRounds : NotCopied {
 public:
  // Tags below are free for rounds.
  static constexpr int kOrderTag = 32767;

  // processes must outlive this, and carry no other message of a round's tag or of kOrderTag.
  DeviceRounds(Communicator& processes, std::unique_ptr<DeviceLink> link);
  ~DeviceRounds();

  // As Communicator::start, but that pointers are the device's and every process starts a round of this tag: all messages
  // of one process to another are in one round, and both list them in the same order. Begins after what the device has
  // been given so far. A round goes on only within the calls of this class.
  std::shared_ptr<Transfer> start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                  std::shared_ptr<const void> memory);
  bool done(Transfer& transfer);
  void wait(Transfer& transfer);

 private:
  class Round;
  struct Announcement {  // of the round that is next, to this process
    std::shared_ptr<std::int32_t> tag = std::make_shared<std::int32_t>(0);
    std::shared_ptr<Transfer> transfer;
  };
  void advance();
  void announce(int tag);
  void take_next(int tag);

  Communicator& processes_;
  const std::unique_ptr<DeviceLink> link_;
  std::deque<std::shared_ptr<Round>> waiting_;  // started here, in this order
  std::deque<Announcement> announcements_;      // that will come, one for each round
  std::deque<std::shared_ptr<Round>> next_;     // in the order of all processes
  std::vector<std::shared_ptr<Round>> moving_;  // given to the device
};

// Rounds over what link_devices() gives, a call of all processes; null where that is null, for the host, and for one
// process.
std::shared_ptr<DeviceRounds> rounds_between(Communicator& processes, Device device);

}  // namespace etc
