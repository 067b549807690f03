// Embeddings on CUDA. The ids are part of the batch on the host, where they were checked.
#include "etc_core/ops/embedding.h"

#include "etc_core/base/cuda/device_array.h"
#include "etc_core/ops/cuda/host_array.h"
#include "etc_core/ops/cuda/id_runs.h"
#include "etc_core/ops/cuda/kernels.h"
#include "etc_core/ops/cuda/launch.h"

namespace etc::ops::cuda {

namespace {

void embedding(const EmbeddingForward& args) {
  // ids [M] of each table, copied for this call.
  const auto ids_of = [&](const EmbeddingTerm& term) {
    return OnDevice<std::int32_t>(term.table == nullptr ? nullptr : term.ids, args.rows);
  };
  const OnDevice<std::int32_t> tokens = ids_of(args.tokens), segments = ids_of(args.segments),
                               positions = ids_of(args.positions);
  const auto table_of = [&](const EmbeddingTerm& term, const OnDevice<std::int32_t>& ids) {
    return EmbeddingTable{span(term.table, term.limit * args.cols), ids.span(), term.limit};
  };
  launch(EmbeddingParams{.rows = args.rows,
                         .cols = args.cols,
                         .base = span(args.base, args.rows * args.cols),  // [M, H], as adder and e
                         .adder = span(args.adder, args.rows * args.cols),
                         .tokens = table_of(args.tokens, tokens),
                         .segments = table_of(args.segments, segments),
                         .positions = table_of(args.positions, positions),
                         .e = span(args.e, args.rows * args.cols)},
         simt::stream());
}

void embedding_backward(const EmbeddingBackward& args) {
  const std::int64_t bytes = args.rows * static_cast<std::int64_t>(sizeof(std::int32_t));
  Bytes memory = simt::device_bytes(3 * bytes + static_cast<std::int64_t>(sizeof(std::int32_t)), Purpose::scratch);
  // One block of memory for three arrays: ids [M] | tokens [M] | first [M + 1].
  auto* const place = static_cast<std::int32_t*>(memory.data());
  const Span<std::int32_t> ids{place, args.rows}, tokens{place + args.rows, args.rows};
  const Span<std::int32_t> first{place + 2 * args.rows, args.rows + 1};
  simt::copy_to_device(ids.data, args.ids, bytes);
  EmbeddingBackwardParams params;
  params.cols = args.cols;
  // The size of the launch depends on the number of distinct ids, so the host waits for the device here.
  params.distinct = sort_ids(ids, args.limit, tokens, first, simt::stream());
  params.de = span(args.de, args.rows * args.cols);  // [M, H]
  params.ids = simt::read_only(ids);
  params.tokens = simt::read_only(tokens);
  params.first = simt::read_only(first);
  params.dtable = span(args.dtable, args.limit * args.cols);  // [limit, H]
  launch(params, simt::stream());
}

}  // namespace

void register_embedding() {
  embedding_kernel.fill(Device::cuda, embedding);
  embedding_backward_kernel.fill(Device::cuda, embedding_backward);
}

}  // namespace etc::ops::cuda
