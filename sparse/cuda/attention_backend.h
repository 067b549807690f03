// Both operators as the kernels see them: two attention types, one work list.
#pragma once

#include <cstdint>

#include "etc_core/base/compute_type.h"
#include "etc_core/base/random.h"
#include "sparse/attention_types.h"
#include "sparse/global_attention.h"
#include "sparse/long_attention.h"
#include "sparse/register_cuda.h"
#include "sparse/visible_tiles.h"

namespace etc::sparse::cuda {

// LongAttentionInputs or GlobalAttentionInputs: type 0 is l2l or g2g, type 1 is l2g or g2l.
struct Inputs {
  const char* op = "";
  std::int64_t heads = 0, head_size = 0;
  Rows q, k[2], v[2];
  RelativeTable relative;
  const TypeTiles* tiles[2] = {nullptr, nullptr};
  DropoutArgs dropout;
  ComputeType compute = ComputeType::fp32;
  DropoutSite site = DropoutSite::long_attention;
  bool split_keys = false;
};

Inputs inputs_of(const LongAttentionInputs& in);
Inputs inputs_of(const GlobalAttentionInputs& in);

struct Forward {
  Inputs inputs;
  TypeScores scores[2];
  MutableRows out;
  float* lse = nullptr;
  void* scratch = nullptr;
};

struct Backward {
  Inputs inputs;
  TypeScoreGradients scores[2];
  Rows out;
  const float* lse = nullptr;
  Rows dout;
  MutableRows dq, dk[2], dv[2];
  RelativeTableGradients drelative;
  void* scratch = nullptr;
};

void forward(const Forward& args);
void backward(const Backward& args);
std::int64_t forward_scratch_bytes(const Inputs& inputs);
std::int64_t backward_scratch_bytes(const Inputs& inputs);

}  // namespace etc::sparse::cuda
