#include "etc_core/optim/shards.h"

#include <algorithm>

#include "etc_core/base/device_memory.h"
#include "etc_core/ops/update_block.h"

namespace etc {

namespace {

std::vector<std::int64_t> sizes_of(const ParameterSet& parameters) {
  std::vector<std::int64_t> sizes;
  for (const auto& parameter : parameters.all()) sizes.push_back(parameter->size());
  return sizes;
}

constexpr std::int64_t bytes_of(std::int64_t numbers) {
  return numbers * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

Shards::Shards(const ParameterSet& parameters, int ranks) : Shards(sizes_of(parameters), ranks) {}

Shards::Shards(std::span<const std::int64_t> sizes, int ranks) : of_rank_(static_cast<std::size_t>(ranks)) {
  std::int64_t all = 0, before = 0;
  for (const std::int64_t size : sizes) all += size;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::int64_t first = 0; first < sizes[i]; first += ops::kBlockSize) {
      auto& own = of_rank_[static_cast<std::size_t>((before + first) * ranks / all)];
      if (own.empty() || own.back().parameter != i) own.push_back({i, first, 0});
      own.back().count += std::min(ops::kBlockSize, sizes[i] - first);
    }
    before += sizes[i];
  }
}

NumberRange Shards::part(int rank, std::size_t parameter) const {
  for (const NumberRange& stretch : of(rank)) {
    if (stretch.parameter == parameter) return stretch;
  }
  return {parameter, 0, 0};
}

void spread(const Division& division, std::span<const Tensor> tensors) {
  std::vector<Tensor> on_host;
  for (const Tensor& tensor : tensors) on_host.push_back(tensor ? tensor.to(Device::cpu) : Tensor());
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  const int own = division.processes.rank();
  for (int rank = 0; rank < division.processes.size(); ++rank) {
    if (rank == own) continue;
    for (const NumberRange& stretch : division.own()) {
      const Tensor& tensor = on_host[stretch.parameter];
      if (tensor) out.push_back({rank, tensor.data() + stretch.first, bytes_of(stretch.count)});
    }
    for (const NumberRange& stretch : division.shards.of(rank)) {
      const Tensor& tensor = on_host[stretch.parameter];
      if (tensor) in.push_back({rank, tensor.data() + stretch.first, bytes_of(stretch.count)});
    }
  }
  division.processes.exchange(out, in);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i] || tensors[i].device() == Device::cpu) continue;
    copy_bytes(tensors[i].device(), tensors[i].data(), Device::cpu, on_host[i].data(), bytes_of(tensors[i].size()));
  }
}

}  // namespace etc
