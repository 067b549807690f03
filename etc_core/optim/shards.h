// Assigns the numbers of a model's parameters to the processes that own them.
//
// Parameters are ordered one after the other, and each is divided into the blocks that updates work on
// (ops/update_block.h), so that a process updates exactly the same blocks as a single process would. Neighbouring
// parameters form a bucket, whose numbers are sent together. In every bucket, each process owns the blocks that begin
// in its part of the bucket's numbers. So shares are as equal as whole blocks allow, are in the order of the ranks, and
// every bucket that is ready gives all processes work.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "etc_core/comm/communicator.h"
#include "etc_core/comm/device_rounds.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/tensor/tensor.h"

namespace etc {

// The bytes of this many gradients or moments.
constexpr std::int64_t bytes_of(std::int64_t numbers) {
  return numbers * static_cast<std::int64_t>(sizeof(float));
}

// Neighbouring numbers of one parameter.
struct NumberRange {
  std::size_t parameter = 0;
  std::int64_t first = 0, count = 0;
};

// Neighbouring parameters.
struct Bucket {
  std::size_t first = 0, end = 0;
};

class Shards {
 public:
  // sizes: of the parameters. bucket_bytes: maximum size of a bucket's gradient, if it holds more than one parameter;
  // 0: one bucket for everything.
  Shards(std::span<const std::int64_t> sizes, int ranks, std::int64_t bucket_bytes = 0);
  Shards(const ParameterSet& parameters, int ranks, std::int64_t bucket_bytes = 0);

  const std::vector<Bucket>& buckets() const { return buckets_; }

  // The owned ranges of a rank: at most one per parameter, in the order of the parameters.
  const std::vector<NumberRange>& of(int rank) const { return of_rank_[static_cast<std::size_t>(rank)]; }
  std::span<const NumberRange> of(int rank, const Bucket& bucket) const;

  // The owned range of this parameter; {parameter, 0, 0}: none of it.
  NumberRange part(int rank, std::size_t parameter) const;

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::vector<NumberRange>> of_rank_;
};

// The processes among which work on parameters is divided, and which numbers each owns.
struct Division {
  Communicator& processes;
  const Shards& shards;
  std::shared_ptr<DeviceRounds> rounds = nullptr;  // send data on devices; null: such data go through the hosts

  // These call `rounds` if set, else `processes`.
  std::shared_ptr<Transfer> start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                  std::shared_ptr<const void> memory) const;
  bool done(Transfer& transfer) const { return rounds ? rounds->done(transfer) : processes.done(transfer); }
  void wait(Transfer& transfer) const { rounds ? rounds->wait(transfer) : processes.wait(transfer); }

  const std::vector<NumberRange>& own() const { return shards.of(processes.rank()); }
};

// Sends the owners' numbers of every tensor to every process. tensors: by parameter, [size of the parameter]; undefined
// ones must be undefined in all processes and stay so. Bytes sent by a process: 4·(its own numbers)·(processes - 1).
void spread(const Division& division, std::span<const Tensor> tensors);

// Starts spread() for one bucket of division.shards.buckets(), on the host or, with division.rounds, on the device.
// own: the tensors from which this process sends its numbers; memory: the tensors that receive the numbers of others,
// defined for the same parameters in all processes. If memory is defined and own is not, messages without content are
// sent.
std::shared_ptr<Transfer> start_spread(const Division& division, std::size_t bucket, std::span<const Tensor> own,
                                       std::span<const Tensor> memory);

}  // namespace etc
