#include "etc_core/nn/blocks/forward_context.h"

namespace etc {

Dropout ForwardContext::dropout(std::int64_t layer, DropoutSite site,
                                const std::shared_ptr<const RaggedRows>& rows) const {
  return {hidden_dropout, seed, static_cast<std::uint32_t>(layer), site, rows};
}

Dense ForwardContext::dense(const Dense& layer) const {
  if (packed != nullptr) return packed->packed(layer);
  Dense result = layer;
  result.compute = compute;
  return result;
}

LayerNormParameters ForwardContext::norm(const LayerNormParameters& of) const {
  LayerNormParameters result = of;
  result.rounded = compute == ComputeType::bf16;
  return result;
}

Initializer truncated_normal(double stddev) {
  return {Initializer::Kind::truncated_normal, static_cast<float>(stddev)};
}

LayerNormParameters add_layer_norm(ParameterSet& parameters, const std::string& name, std::int64_t size,
                                   const ops::NormStatistics& statistics) {
  return {&parameters.add(name + "/gamma", {size}, kOnes), &parameters.add(name + "/beta", {size}, kZeros), statistics};
}

Dense::Part add_dense(ParameterSet& parameters, const std::string& name, std::int64_t in, std::int64_t out,
                      Initializer kernel) {
  return {&parameters.add(name + "/kernel", {in, out}, kernel), &parameters.add(name + "/bias", {out}, kZeros)};
}

Dense single(Dense::Part part) {
  Dense dense;
  dense.parts = {part};
  return dense;
}

}  // namespace etc
