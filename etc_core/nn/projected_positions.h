// Transformer-XL's tables of all layers, W_R·R and the biases derived from it, cached between passes of inference.
//
// They depend on weights alone: R has a row for every distance up to the clip, whatever the length of the texts. If
// they were recomputed in every pass, they would be a sixth of the products for one text as long as the clip. They are
// cached like packed layers (packed_cache.h): dropped before a tape records, since training changes the weights;
// several threads may read them once Positions::release_kernels() has computed them all. They take R·(A + N) numbers
// per layer; the H·A numbers of a released W_R are freed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "etc_core/autograd/attention.h"

namespace etc {

class ProjectedPositions {
 public:
  // A layer's tables, computed by `make` if they are missing or if `versions` has changed. versions: sum over the
  // parameters that the tables depend on. The result is valid until the next clear() or recomputation of this layer.
  const RelativeParameters& of(std::int64_t layer, std::uint64_t versions,
                               const std::function<RelativeParameters()>& make);

  void clear() { layers_.clear(); }

 private:
  struct Entry {
    std::uint64_t versions = 0;
    RelativeParameters tables;
  };
  std::map<std::int64_t, Entry> layers_;
};

}  // namespace etc
