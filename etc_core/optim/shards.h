// Which numbers of a model's parameters belong to which of several processes.
//
// Parameters lie one after the other, each cut into the blocks that updates work on (ops/update_block.h), so that an
// update of some computes the same blocks as one of everything. Neighbouring parameters are a bucket, whose numbers travel
// together. Of every bucket each process owns the blocks that begin in its part of the bucket's numbers: shares are as
// equal as whole blocks allow, lie in the order of the ranks, and whatever bucket is ready, all processes have work.
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

// Of so many gradients or moments.
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
  // sizes: of the parameters. bucket_bytes: of a bucket's gradient at most, where it holds more than one parameter;
  // 0: one bucket.
  Shards(std::span<const std::int64_t> sizes, int ranks, std::int64_t bucket_bytes = 0);
  Shards(const ParameterSet& parameters, int ranks, std::int64_t bucket_bytes = 0);

  const std::vector<Bucket>& buckets() const { return buckets_; }

  // At most one stretch of a parameter, in the order of the parameters.
  const std::vector<NumberRange>& of(int rank) const { return of_rank_[static_cast<std::size_t>(rank)]; }
  std::span<const NumberRange> of(int rank, const Bucket& bucket) const;

  // Of this parameter; {parameter, 0, 0}: none of it.
  NumberRange part(int rank, std::size_t parameter) const;

 private:
  std::vector<Bucket> buckets_;
  std::vector<std::vector<NumberRange>> of_rank_;
};

// The processes among which work on parameters is divided, and who owns what.
struct Division {
  Communicator& processes;
  const Shards& shards;
  std::shared_ptr<DeviceRounds> rounds = nullptr;  // what is on devices travels in these; null: through the hosts

  // As those of `processes`, or of `rounds` where there are some.
  std::shared_ptr<Transfer> start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                  std::shared_ptr<const void> memory) const;
  bool done(Transfer& transfer) const { return rounds ? rounds->done(transfer) : processes.done(transfer); }
  void wait(Transfer& transfer) const { rounds ? rounds->wait(transfer) : processes.wait(transfer); }

  const std::vector<NumberRange>& own() const { return shards.of(processes.rank()); }
};

// The owners' numbers of every tensor, in every process. tensors: by parameter, [size of the parameter]; the same ones
// are undefined everywhere and stay so. Bytes sent by a process: 4·(its own numbers)·(processes - 1).
void spread(const Division& division, std::span<const Tensor> tensors);

// Begins that for one bucket, of division.shards.buckets(), on the host or, with division.rounds, on the device. own: what this process sends its numbers from,
// into memory: where that is defined, here and everywhere, and own is not, nothing comes to the others.
std::shared_ptr<Transfer> start_spread(const Division& division, std::size_t bucket, std::span<const Tensor> own,
                                       std::span<const Tensor> memory);

}  // namespace etc
