// What every block of one forward pass reads besides its parameters, and what declares these parameters.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "etc_core/autograd/attention.h"
#include "etc_core/autograd/functions.h"
#include "etc_core/nn/packed_cache.h"
#include "etc_core/nn/parameters.h"

namespace etc {

class SkipWatch;  // residual_placement.h

struct ForwardContext {
  std::shared_ptr<AttentionBatch> attention;  // tiles, labels and running scores of the batch
  float hidden_dropout = 0;                   // 0 outside training
  std::uint64_t seed = 0;
  PackedCache* packed = nullptr;            // inference; null: kernels are read as they are
  ComputeType compute = ComputeType::fp32;  // of these
  SkipWatch* skip_watch = nullptr;          // of the residual sums; null: nobody

  Dropout dropout(std::int64_t layer, DropoutSite site, const std::shared_ptr<const RaggedRows>& rows) const;
  Dense dense(const Dense& layer) const;  // as this pass multiplies it
  // A layer norm whose result this pass's products read.
  LayerNormParameters norm(const LayerNormParameters& of) const;
};

inline constexpr Initializer kZeros{Initializer::Kind::zeros, 0};
inline constexpr Initializer kOnes{Initializer::Kind::ones, 0};
Initializer truncated_normal(double stddev);  // normal(0, stddev) truncated at two deviations

// <name>/gamma of ones and <name>/beta of zeros, [size] each.
LayerNormParameters add_layer_norm(ParameterSet& parameters, const std::string& name, std::int64_t size,
                                   const ops::NormStatistics& statistics = {});

// <name>/kernel [in, out] and <name>/bias [out] of zeros.
Dense::Part add_dense(ParameterSet& parameters, const std::string& name, std::int64_t in, std::int64_t out,
                      Initializer kernel);

// A dense layer of one part.
Dense single(Dense::Part part);

}  // namespace etc
