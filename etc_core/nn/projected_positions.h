// Transformer-XL's tables of all layers, W_R·R and the biases from it, kept between passes of inference.
//
// They follow from weights alone: R has a row for every distance up to the clip, however long the texts are. Multiplied
// anew in every pass they are a sixth of the products of one text as long as the clip. They are kept as packed layers are
// (packed_cache.h): emptied before a tape records, since training changes the weights; several threads may read them once
// Positions::release_kernels() has made all. They take R·(A + N) numbers a layer, and the H·A of a released W_R are free.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "etc_core/autograd/attention.h"

namespace etc {

class ProjectedPositions {
 public:
  // A layer's tables, made now if they are not there or if `versions` is another than then. versions: sum over the
  // parameters that the tables follow from. The result is valid until the next clear() or making of this layer.
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
