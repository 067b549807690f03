#include "etc_core/optim/shards.h"

#include <algorithm>
#include <utility>

#include "etc_core/base/device_memory.h"
#include "etc_core/ops/update_block.h"

namespace etc {

namespace {

std::vector<std::int64_t> sizes_of(const ParameterSet& parameters) {
  std::vector<std::int64_t> sizes;
  for (const auto& parameter : parameters.all()) sizes.push_back(parameter->size());
  return sizes;
}

std::vector<Bucket> cut_into_buckets(std::span<const std::int64_t> sizes, std::int64_t bucket_bytes) {
  std::vector<Bucket> buckets;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bytes += bytes_of(sizes[i]);
    if (i == 0 || (bucket_bytes > 0 && bytes > bucket_bytes)) {
      buckets.push_back({i, i});
      bytes = bytes_of(sizes[i]);
    }
    buckets.back().end = i + 1;
  }
  return buckets;
}

}  // namespace

Shards::Shards(const ParameterSet& parameters, int ranks, std::int64_t bucket_bytes)
    : Shards(sizes_of(parameters), ranks, bucket_bytes) {}

Shards::Shards(std::span<const std::int64_t> sizes, int ranks, std::int64_t bucket_bytes)
    : buckets_(cut_into_buckets(sizes, bucket_bytes)), of_rank_(static_cast<std::size_t>(ranks)) {
  for (const Bucket& bucket : buckets_) {
    std::int64_t all = 0, before = 0;
    for (std::size_t i = bucket.first; i < bucket.end; ++i) all += sizes[i];
    for (std::size_t i = bucket.first; i < bucket.end; ++i) {
      for (std::int64_t first = 0; first < sizes[i]; first += ops::kBlockSize) {
        auto& own = of_rank_[static_cast<std::size_t>((before + first) * ranks / all)];
        if (own.empty() || own.back().parameter != i) own.push_back({i, first, 0});
        own.back().count += std::min(ops::kBlockSize, sizes[i] - first);
      }
      before += sizes[i];
    }
  }
}

std::span<const NumberRange> Shards::of(int rank, const Bucket& bucket) const {
  const std::vector<NumberRange>& all = of(rank);
  const auto before = [](const NumberRange& range, std::size_t parameter) { return range.parameter < parameter; };
  const auto first = std::lower_bound(all.begin(), all.end(), bucket.first, before);
  return {first, std::lower_bound(first, all.end(), bucket.end, before)};
}

NumberRange Shards::part(int rank, std::size_t parameter) const {
  for (const NumberRange& range : of(rank)) {
    if (range.parameter == parameter) return range;
  }
  return {parameter, 0, 0};
}

std::shared_ptr<Transfer> Division::start(int tag, std::span<const Outgoing> out, std::span<const Incoming> in,
                                          std::shared_ptr<const void> memory) const {
  return rounds ? rounds->start(tag, out, in, std::move(memory)) : processes.start(tag, out, in, std::move(memory));
}

std::shared_ptr<Transfer> start_spread(const Division& division, std::size_t bucket, std::span<const Tensor> own,
                                       std::span<const Tensor> memory) {
  const Bucket& parameters = division.shards.buckets()[bucket];
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  const int own_rank = division.processes.rank();
  for (int rank = 0; rank < division.processes.size(); ++rank) {
    if (rank == own_rank) continue;
    for (const NumberRange& range : division.shards.of(own_rank, parameters)) {
      if (!memory[range.parameter]) continue;
      const Tensor& tensor = own[range.parameter];
      out.push_back({rank, tensor ? tensor.data() + range.first : nullptr, bytes_of(range.count)});
    }
    for (const NumberRange& range : division.shards.of(rank, parameters)) {
      const Tensor& tensor = memory[range.parameter];
      if (tensor) in.push_back({rank, tensor.data() + range.first, bytes_of(range.count)});
    }
  }
  const std::span<const Tensor> held = memory.subspan(parameters.first, parameters.end - parameters.first);
  return division.start(2 + 2 * static_cast<int>(bucket), out, in,
                        std::make_shared<std::vector<Tensor>>(held.begin(), held.end()));
}

void spread(const Division& division, std::span<const Tensor> tensors) {
  std::vector<Tensor> sent;
  for (const Tensor& tensor : tensors) {
    sent.push_back(tensor && division.rounds == nullptr ? tensor.to(Device::cpu) : tensor);
  }
  std::vector<std::shared_ptr<Transfer>> transfers;
  for (std::size_t bucket = 0; bucket < division.shards.buckets().size(); ++bucket) {
    transfers.push_back(start_spread(division, bucket, sent, sent));
  }
  for (const auto& transfer : transfers) division.wait(*transfer);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i] || tensors[i].device() == Device::cpu || division.rounds != nullptr) continue;
    copy_bytes(tensors[i].device(), tensors[i].data(), Device::cpu, sent[i].data(), bytes_of(tensors[i].size()));
  }
}

}  // namespace etc
