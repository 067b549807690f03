// Dense layers packed once for inference. Packing costs about as much memory as the kernels themselves, so the cache is
// emptied whenever a tape records. Kernels whose values are gone stay usable as long as they are in the cache.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "etc_core/autograd/functions.h"

namespace etc {

class PackedCache {
 public:
  // The same layer with packed kernels, packed now if they are not yet or if a kernel or bias changed since. The result
  // points into the cache: use it before the next clear().
  Dense packed(const Dense& dense);

  // Packs all layers in the number type of products and takes the values of their kernels away, model layer by model layer, so that
  // at no time all kernels are there twice. Kernels may be shared within a model layer only.
  void release_kernels(const std::vector<std::vector<Dense>>& layers, InferenceTypes types);

  // Before a tape records: empties the cache, since training changes the kernels. Throws Error when they were released.
  void begin_training();

  // The number type of layers packed from now on. What is packed in another is packed anew at its next use, as long as
  // the kernels have values.
  void set_compute(ComputeType compute) { types_.compute = compute; }
  // That, and as release_kernels() was told.
  InferenceTypes types() const { return types_; }

  void clear();

 private:
  struct Entry {
    std::uint64_t versions = 0;  // sum over kernels and biases: versions only grow
    ops::PackedWeights weights;
    Tensor bias;
  };
  std::map<std::vector<const Parameter*>, std::unique_ptr<Entry>> entries_;  // by the kernels
  InferenceTypes types_;
  bool released_ = false;
};

}  // namespace etc
