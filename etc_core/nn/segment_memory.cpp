#include "etc_core/nn/segment_memory.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"
#include "etc_core/nn/input_checks.h"

namespace etc {

namespace {

std::int64_t rows_of(const LayerMemory& memory, std::size_t example) {
  return memory.empty() ? 0 : memory.offsets[example + 1] - memory.offsets[example];
}

}  // namespace

void check_memory(const EncoderInput& input, const DenseConfig& config) {
  const LayerMemory& memory = input.memory;
  if (memory.empty()) return;
  const std::int64_t given = memory.offsets.back();
  if (!config.causal) {
    fail(kEncoderInput, "memory: expected none, since the encoder is not causal: it sees both directions, got {} rows",
         given);
  }
  if (config.memory_length == 0) {
    fail(kEncoderInput, "memory: expected none, since memory_length is 0, got {} rows", given);
  }
  if (std::ssize(memory.offsets) != input.batch() + 1 || memory.offsets.front() != 0) {
    fail(kEncoderInput, "memory.offsets: expected [B+1={}] offsets that begin with 0, got [{}]", input.batch() + 1,
         memory.offsets.size());
  }
  for (std::size_t b = 0; b + 1 < memory.offsets.size(); ++b) {
    const std::int64_t rows = rows_of(memory, b);
    if (rows < 0 || rows > config.memory_length) {
      fail(kEncoderInput, "memory.offsets: example {}: expected 0 … memory_length={} rows, got {}", b,
           config.memory_length, rows);
    }
  }
  if (std::ssize(memory.states) != config.num_hidden_layers) {
    fail(kEncoderInput, "memory.states: expected one of each of {} layers, got {}", config.num_hidden_layers,
         memory.states.size());
  }
  for (std::size_t layer = 0; layer < memory.states.size(); ++layer) {
    const Tensor& states = memory.states[layer];
    if (states.rank() == 2 && states.rows() == memory.offsets.back() && states.cols() == config.hidden_size) continue;
    fail(kEncoderInput, "memory.states: layer {}: expected {}, got {}", layer,
         shape_text({{"M", memory.offsets.back()}, {"H", config.hidden_size}}), states.shape_text());
  }
}

std::shared_ptr<SegmentMemory> SegmentMemory::of(const EncoderInput& input, const DenseConfig& config, Device device) {
  if (config.memory_length == 0) return nullptr;
  auto made = std::make_shared<SegmentMemory>();
  if (!input.memory.empty() && input.memory.offsets.back() > 0) made->before_ = input.memory;
  for (Tensor& states : made->before_.states) states = states.to(device);
  const LayerMemory& before = made->before_;
  const std::int64_t above = before.empty() ? 0 : before.offsets.back();
  made->key_offsets_ = {0};
  made->after_.offsets = {0};
  for (std::size_t b = 0; b + 1 < input.long_offsets.size(); ++b) {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < rows_of(before, b); ++i) rows.push_back(before.offsets[b] + i);
    for (std::int64_t i = input.long_offsets[b]; i < input.long_offsets[b + 1]; ++i) rows.push_back(above + i);
    const auto kept = std::min<std::int64_t>(std::ssize(rows), config.memory_length);
    made->key_rows_.insert(made->key_rows_.end(), rows.begin(), rows.end());
    made->kept_rows_.insert(made->kept_rows_.end(), rows.end() - kept, rows.end());
    made->key_offsets_.push_back(std::ssize(made->key_rows_));
    made->after_.offsets.push_back(std::ssize(made->kept_rows_));
  }
  made->after_.states.resize(static_cast<std::size_t>(config.num_hidden_layers));
  return made;
}

Columns SegmentMemory::join(Tape& tape, const Columns& memory, const Columns& segment) const {
  return {gather_rows(tape, join_rows(tape, memory.var, segment.var), key_rows_), segment.first};
}

void SegmentMemory::remember(std::int64_t layer, const Tensor& x) {
  Tape tape(Recording::off);  // makes copies that outlive the pass and have no gradient
  const Var all = seen() ? join_rows(tape, states(layer), Var(x)) : Var(x);
  after_.states[static_cast<std::size_t>(layer)] = gather_rows(tape, all, kept_rows_).value();
}

}  // namespace etc
