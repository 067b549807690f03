// Rounds of messages between devices: processes may start them in any order, while the link requires one common order.
//
// A device processes its messages one after the other, and each message waits for its peer. So if one process began
// with round a and another with round b, both would wait for ever (deadlock). Therefore
//
//   every process    starts a round ─▶ tells the others so, and which of its messages have content (on the hosts)
//   the first one    once all have told it of a round: announces this round as the next one        (on the hosts)
//   every process    gives its device the rounds in the announced order                            (device to device)
//
// An announced round has been started in every process, so a device never waits for a host that waits for the device.
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

  // As Communicator::start, with two differences: pointers are to device memory, and every process must start a round
  // of this tag. All messages from one process to another are in one round, and both list them in the same order. The
  // messages start after the work queued on the device so far. A round proceeds only within the calls of this class.
  std::shared_ptr<Transfer> start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                  std::shared_ptr<const void> memory);
  bool done(Transfer& transfer);
  void wait(Transfer& transfer);

 private:
  class Round;
  struct Announcement {  // received by this process: the tag of the next round
    std::shared_ptr<std::int32_t> tag = std::make_shared<std::int32_t>(0);
    std::shared_ptr<Transfer> transfer;
  };
  void advance();
  void announce(int tag);
  void take_next(int tag);

  Communicator& processes_;
  const std::unique_ptr<DeviceLink> link_;
  std::deque<std::shared_ptr<Round>> waiting_;  // started here and not announced yet, in the order of their starts
  std::deque<Announcement> announcements_;      // expected, one for each round
  std::deque<std::shared_ptr<Round>> next_;     // announced, in the common order of all processes
  std::vector<std::shared_ptr<Round>> moving_;  // given to the device
};

// Rounds over the link of link_devices(); a collective call. Null where that link is null, for the host, and for a
// single process.
std::shared_ptr<DeviceRounds> rounds_between(Communicator& processes, Device device);

}  // namespace etc
