// Scratch and work lists of linear attention. A task is a chunk of 512 rows of one head, counted from the example's
// first row, as on the CPU; its block has its own workspace.
#include "sparse/cuda/performer_backend.h"

#include <cmath>
#include <vector>

#include "etc_core/base/cuda/device_array.h"
#include "sparse/cuda/performer_launch.h"
#include "sparse/performer_layout.h"

namespace etc::sparse::cuda {

namespace {

struct PerformerPlan {
  std::vector<PerformerTask> queries, keys;
  std::vector<PerformerHead> heads;
};

std::vector<PerformerTask> tasks_of(const ChunkList& list, const PerformerState& state) {
  std::vector<PerformerTask> tasks;
  for (std::int64_t n = 0; n < list.tasks(); ++n) {
    const sparse::Chunk chunk = list.chunk(n);
    PerformerTask task;
    task.first_row = chunk.first_row;
    task.sum = state.sum(chunk.example, chunk.head, chunk.index);
    task.maximum = state.maximum(chunk.example, chunk.head);
    task.rows = static_cast<std::int32_t>(chunk.rows);
    task.head = static_cast<std::int32_t>(chunk.head);
    tasks.push_back(task);
  }
  return tasks;
}

PerformerPlan plan_of(const PerformerInputs& in) {
  const PerformerState state(in);
  const ChunkList queries(in.query_offsets, in.examples, in.heads), &keys = state.keys;
  PerformerPlan plan;
  plan.queries = tasks_of(queries, state);
  plan.keys = tasks_of(keys, state);
  for (std::int64_t n = 0; n < keys.tasks(); ++n) {
    // The slot with the gradients of the sums: of the chunk's own queries (causal), of all, or of none (zeros).
    const sparse::Chunk chunk = keys.chunk(n);
    const bool seen = queries.chunks(chunk.example) > 0;
    plan.keys[static_cast<std::size_t>(n)].gradient =
        seen ? queries.slot(chunk.example, chunk.head, in.causal ? chunk.index : 0) : queries.tasks();
  }
  for (std::int64_t b = 0; b < in.examples; ++b) {
    for (std::int64_t h = 0; h < in.heads; ++h) {
      plan.heads.push_back({state.sum(b, h, 0), state.maximum(b, h), keys.slot(b, h, 0), queries.slot(b, h, 0),
                            static_cast<std::int32_t>(keys.chunks(b)), static_cast<std::int32_t>(queries.chunks(b)),
                            static_cast<std::int32_t>(h), 0});
    }
  }
  return plan;
}

PerformerSizesView sizes_of(const PerformerInputs& in) {
  const PerformerSizes sizes(in);
  PerformerSizesView view;
  view.heads = in.heads;
  view.queries = in.query_offsets[in.examples];
  view.head_size = static_cast<int>(in.head_size);
  view.features = static_cast<int>(in.features);
  view.stride = sizes.stride;
  view.sum_ones = sizes.padded * sizes.stride;
  view.sum_floats = sizes.sum_floats();
  view.scale = projection_scale(in);
  view.row_scale = square_scale(in);
  view.causal = in.causal;
  view.stabilised = in.stabilised;
  view.workspace_floats = performer_workspace_floats(view);
  return view;
}

// Reserves memory for a list and, unless the carver only counts, copies the list there.
template <typename T>
Span<const T> upload(simt::Carver& carver, const std::vector<T>& list) {
  const auto count = static_cast<std::int64_t>(list.size());
  const Span<T> place = carver.take<T>(count);
  if (place.data != nullptr)
    simt::copy_to_device(place.data, list.data(), count * static_cast<std::int64_t>(sizeof(T)));
  return simt::read_only(place);
}

// Lays out the scratch of a call; with a null carver it only counts bytes.
PerformerParams lay_out(simt::Carver& carver, const PerformerInputs& in, bool backward) {
  const PerformerPlan plan = plan_of(in);
  PerformerParams params;
  params.sizes = sizes_of(in);
  params.query_tasks = upload(carver, plan.queries);
  params.key_tasks = upload(carver, plan.keys);
  params.heads = upload(carver, plan.heads);
  params.turned = carver.take<float>(in.head_size * in.features);
  const std::int64_t queries = params.query_tasks.size, keys = params.key_tasks.size;
  params.workspaces = carver.take<float>((queries > keys ? queries : keys) * params.sizes.workspace_floats);
  params.slots = carver.take<float>((backward ? queries + 1 : keys) * params.sizes.sum_floats);
  params.largest = carver.take<float>(keys);
  if (!backward) return params;
  params.slopes = carver.take<float>(keys);
  params.largest_row = carver.take<std::int64_t>(keys);
  params.largest_feature = carver.take<std::int32_t>(keys);
  return params;
}

std::int64_t floats_of(std::int64_t rows, std::int64_t stride, const PerformerInputs& in) {
  return rows == 0 ? 0 : (rows - 1) * stride + in.heads * in.head_size;
}
Operand<float> operand_of(const Rows& rows, const PerformerInputs& in) {
  return {{rows.data, floats_of(rows.rows, rows.stride, in)}, in.head_size, rows.stride};
}
Output output_of(const MutableRows& rows, const PerformerInputs& in) {
  return {{rows.data, floats_of(rows.rows, rows.stride, in)}, {}, rows.stride};
}

void set_operands(PerformerParams& params, const PerformerInputs& in) {
  params.q = operand_of(in.q, in);
  params.k = operand_of(in.k, in);
  params.v = operand_of(in.v, in);
  params.projection = {in.projection, in.features * in.head_size};
}

std::int64_t scratch_bytes(const PerformerInputs& in, bool backward) {
  simt::Carver counter(nullptr);
  lay_out(counter, in, backward);
  return counter.used();
}

}  // namespace

void performer_forward(const PerformerForward& args) {
  const PerformerInputs& in = args.inputs;
  simt::Carver carver(args.scratch);
  PerformerParams params = lay_out(carver, in, false);
  set_operands(params, in);
  params.state = {args.state, performer_state_floats(in)};
  params.denominators = {args.denominators, in.heads * in.q.rows};
  params.out = output_of(args.out, in);
  launch_performer_forward(params, simt::stream());
}

void performer_backward(const PerformerBackward& args) {
  const PerformerInputs& in = args.inputs;
  simt::Carver carver(args.scratch);
  PerformerParams params = lay_out(carver, in, true);
  set_operands(params, in);
  // Only read here; forward and backward kernels share one (writable) view type.
  params.state = {const_cast<float*>(args.state), performer_state_floats(in)};
  params.denominators = {const_cast<float*>(args.denominators), in.heads * in.q.rows};
  params.out_rows = operand_of(args.out, in);
  params.dout = operand_of(args.dout, in);
  params.dq = output_of(args.dq, in);
  params.dk = output_of(args.dk, in);
  params.dv = output_of(args.dv, in);
  // For keys that no query sees, the gradients are products with this slot of zeros.
  const std::int64_t floats = params.sizes.sum_floats;
  simt::fill_zero(params.slots.data + params.query_tasks.size * floats,
                  floats * static_cast<std::int64_t>(sizeof(float)));
  launch_performer_backward(params, simt::stream());
}

std::int64_t performer_forward_scratch_bytes(const PerformerInputs& in) {
  return scratch_bytes(in, false);
}

std::int64_t performer_backward_scratch_bytes(const PerformerInputs& in) {
  return scratch_bytes(in, true);
}

}  // namespace etc::sparse::cuda
