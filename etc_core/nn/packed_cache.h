// Dense layers packed once for inference. Packed layers take about as much memory as the kernels themselves, so the
// cache is emptied whenever a tape records. Kernels whose values have been released stay usable as long as they are in
// the cache.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "etc_core/autograd/functions.h"

namespace etc {

class PackedCache {
 public:
  // The same layer with packed kernels. Packs them if they are not in the cache or if a kernel or bias has changed
  // since. The result points into the cache and is valid until the next clear().
  Dense packed(const Dense& dense);

  // Packs all layers in the number type of products and frees the values of their kernels, one model layer at a time,
  // so that the kernels never exist twice all at once. Kernels may be shared only within a model layer.
  void release_kernels(const std::vector<std::vector<Dense>>& layers, InferenceTypes types);

  // Call before a tape records: empties the cache, since training changes the kernels. Throws Error if they were
  // released.
  void begin_training();

  // The current number types: set by release_kernels().
  InferenceTypes types() const { return types_; }

  void clear();

 private:
  struct Entry {
    std::uint64_t versions = 0;  // sum over kernels and biases, which suffices because versions only grow
    ops::PackedWeights weights;
    Tensor bias;
  };
  std::map<std::vector<const Parameter*>, std::unique_ptr<Entry>> entries_;  // key: the kernels
  InferenceTypes types_;
  bool released_ = false;
};

}  // namespace etc
