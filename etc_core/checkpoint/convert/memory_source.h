// A checkpoint whose tensors are in memory of the calling program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/checkpoint/convert/tensor_source.h"
#include "etc_core/nn/parameters.h"

namespace etc::convert {

struct MemoryTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string type;            // float32, float16, bfloat16, float64, int64, int32, int16, int8, uint64 … uint8, bool
  const void* data = nullptr;  // row-major; outlives the source
};

class MemorySource : public TensorSource {
 public:
  // where: prefix of messages. Throws UsageError on a name used twice, an unknown type, a negative size, and a null
  // pointer for a tensor that is not empty.
  MemorySource(const std::vector<MemoryTensor>& tensors, std::string where);

  const SourceTensors& tensors() const override { return tensors_; }
  const std::string& where() const override { return where_; }
  void read_blocks(std::string_view name, void* out, const BytesRead& seen) const override;

 private:
  std::string where_;
  SourceTensors tensors_;
  std::map<std::string, const void*, std::less<>> data_;
};

// Fills an encoder's parameters from tensors of the same names and shapes; tensors of heads are ignored. Throws Error
// listing tensors that are absent, of another shape or unused, or naming a number that is not finite.
void read_own(const TensorSource& source, ParameterSet& parameters);

}  // namespace etc::convert
