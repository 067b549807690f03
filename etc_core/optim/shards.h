// Which numbers of a model's parameters belong to which of several processes.
//
// Parameters lie one after the other, each cut into the blocks that updates work on (ops/update_block.h); a process owns
// the blocks that begin in its part of the numbers. So shares are as equal as whole blocks allow, lie in the order of the
// ranks, and an update of them computes the same blocks as one of everything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "etc_core/comm/communicator.h"
#include "etc_core/nn/parameters.h"
#include "etc_core/tensor/tensor.h"

namespace etc {

// Neighbouring numbers of one parameter.
struct NumberRange {
  std::size_t parameter = 0;
  std::int64_t first = 0, count = 0;
};

class Shards {
 public:
  // sizes: of the parameters
  Shards(std::span<const std::int64_t> sizes, int ranks);
  Shards(const ParameterSet& parameters, int ranks);

  // At most one stretch of a parameter, in the order of the parameters.
  const std::vector<NumberRange>& of(int rank) const { return of_rank_[static_cast<std::size_t>(rank)]; }

  // Of this parameter; {parameter, 0, 0}: none of it.
  NumberRange part(int rank, std::size_t parameter) const;

 private:
  std::vector<std::vector<NumberRange>> of_rank_;
};

// The processes among which work on parameters is divided, and who owns what.
struct Division {
  Communicator& processes;
  const Shards& shards;

  const std::vector<NumberRange>& own() const { return shards.of(processes.rank()); }
};

// The owners' numbers of every tensor, in every process. tensors: by parameter, [size of the parameter]; the same ones
// are undefined everywhere and stay so. Bytes sent by a process: 4·(its own numbers)·(processes - 1).
void spread(const Division& division, std::span<const Tensor> tensors);

}  // namespace etc
