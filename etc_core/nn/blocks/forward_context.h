// The data that every block of one forward pass reads besides its parameters, and helpers that declare parameters.
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
  PackedCache* packed = nullptr;            // for inference; null: kernels are used unpacked
  ComputeType compute = ComputeType::fp32;  // number type of products with unpacked kernels
  SkipWatch* skip_watch = nullptr;          // observer of the residual sums; may be null

  Dropout dropout(std::int64_t layer, DropoutSite site, const std::shared_ptr<const RaggedRows>& rows) const;
  Dense dense(const Dense& layer) const;  // packed, or set to `compute`
  // For a layer norm whose result is read by products: also writes it in bf16 if `compute` is bf16.
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
