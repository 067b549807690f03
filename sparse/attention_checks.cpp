#include "sparse/attention_checks.h"

#include <cmath>
#include <string>

#include "etc_core/base/backend.h"
#include "etc_core/base/shape.h"

namespace etc::sparse {

namespace {

// Checks use pointers and sizes only.
Rows read_only(const MutableRows& rows) {
  return {rows.data, rows.stride, rows.rows, rows.bf16};
}

// Without a backend there is no kernel; the kernel slot reports that later.
bool joins_in_bf16(Device device) {
  const Backend* const backend = find_backend(device);
  return backend == nullptr || backend->joins_in_bf16;
}

}  // namespace

ComputeType compute_of(Device device, ComputeType wanted, const RelativeTable& table) {
  // These parts need fp32 keys or weights, which the CPU's bf16 kernels have rounded or do not keep.
  const bool by_pair = table.key_vectors != nullptr || table.products != nullptr || table.value_vectors != nullptr;
  return wanted == ComputeType::bf16 && by_pair && !joins_in_bf16(device) ? ComputeType::fp32 : wanted;
}

void AttentionChecks::sizes() const {
  if (heads < 1 || head_size < 1)
    fail(tiles.op->name, "expected N >= 1 heads of D >= 1, got {}", shape_text({{"N", heads}, {"D", head_size}}));
  for (const TypeTiles& type : tiles.types) {
    if (type.heads == 1 || type.heads == heads) continue;
    fail(tiles.op->name, "tiles of {}: expected those of N={} heads or of one for all, got those of {}", type.type.name,
         heads, type.heads);
  }
}

void AttentionChecks::rows(const char* name, const char* type, const Rows& rows, std::int64_t expected) const {
  // "q" for queries, "k of l2g" for a key set: the name that the caller knows.
  const std::string full = *type == '\0' ? name : std::string(name) + " of " + type;
  const char* const letter = *type == '\0' ? "queries" : "keys";
  if (rows.rows != expected) {
    fail(tiles.op->name, "{} must match the batch: expected {}, got {}", full,
         shape_text({{letter, expected}, {"N", heads}, {"D", head_size}}),
         shape_text({{letter, rows.rows}, {"N", heads}, {"D", head_size}}));
  }
  // An empty tensor has no address to check.
  if (expected == 0) return;
  const bool bf16 = rows_type == ElementType::bf16;
  if ((bf16 ? rows.data != nullptr : rows.bf16 != nullptr)) {
    fail(tiles.op->name, "{}: expected numbers in {} like those of the call, got the other type", full,
         element_type_name(rows_type));
  }
  if (rows.data == nullptr && rows.bf16 == nullptr) {
    fail(tiles.op->name, "{}: expected {}, got null", full,
         shape_text({{letter, expected}, {"N", heads}, {"D", head_size}}));
  }
  if (rows.stride < heads * head_size) {
    fail(tiles.op->name, "{}: expected rows at least N*D={} numbers apart, got {}", full, heads * head_size,
         rows.stride);
  }
  // Kernels copy 16 bytes at a time.
  constexpr std::int64_t kColumns = 8;
  if (bf16 && (rows.stride % kColumns != 0 || reinterpret_cast<std::uintptr_t>(rows.bf16) % 16 != 0)) {
    fail(tiles.op->name, "{}: expected rows of bf16 that begin at multiples of 16 bytes, got them {} numbers apart",
         full, rows.stride);
  }
}

void AttentionChecks::query_rows(const char* name, const Rows& given) const {
  rows(name, "", given, tiles.types[0].queries());
}

void AttentionChecks::query_rows(const char* name, const MutableRows& given) const {
  query_rows(name, read_only(given));
}

void AttentionChecks::key_rows(const char* name, int t, const Rows& given) const {
  rows(name, tiles.types[t].type.name, given, tiles.types[t].keys());
}

void AttentionChecks::key_rows(const char* name, int t, const MutableRows& given) const {
  key_rows(name, t, read_only(given));
}

void AttentionChecks::pointer(const char* name, const void* pointer, std::int64_t elements) const {
  if (elements > 0 && pointer == nullptr) fail(tiles.op->name, "{}: expected {} elements, got null", name, elements);
}

void AttentionChecks::scale(float given) const {
  if (!(given >= 0.0f && std::isfinite(given))) {
    fail(tiles.op->name, "scale: expected a finite number, 0 for 1/sqrt(D) or above, got {}", given);
  }
}

void AttentionChecks::table(const RelativeTable& table) const {
  // Each part may be absent; a part that is present must have a row for every label.
  if (!table.adds() && !table.joins()) return;
  if (table.labels < 1 || table.labels > kMostLabels) {
    fail(tiles.op->name, "rel: expected R from 1 to {}, got R={}", kMostLabels, table.labels);
  }
  if (table.factors != nullptr && table.products != nullptr) {
    fail(tiles.op->name, "rel: expected a factor of q·k or one of each component, got both");
  }
  for (const TypeTiles& type : tiles.types) {
    // Labels were checked against R when the tiles were built, so this makes every look-up safe.
    if (type.labelled() && type.relative_labels > table.labels) {
      fail(tiles.op->name, "rel must match labels.{}: expected R={}, got R={}", type.type.name, type.relative_labels,
           table.labels);
    }
  }
}

void AttentionChecks::table_gradients(const RelativeTable& table, const RelativeTableGradients& gradients) const {
  const std::int64_t numbers = table.labels * table.heads(heads);
  const auto check = [&](const char* name, const float* part, const float* gradient, std::int64_t size) {
    if (part != nullptr) pointer(name, gradient, numbers * size);
  };
  check("drel", table.vectors, gradients.vectors, head_size);
  check("drel_bias", table.biases, gradients.biases, 1);
  check("drel_k", table.key_vectors, gradients.key_vectors, head_size);
  check("dfactor", table.factors, gradients.factors, 1);
  check("dw", table.products, gradients.products, head_size);
  check("drel_v", table.value_vectors, gradients.value_vectors, head_size);
}

profiler::Work AttentionChecks::work(int products) const {
  // Masked pairs cost time but are not counted, so that rates of different masks can be compared.
  const auto pairs = static_cast<double>(tiles.types[0].pairs_of(heads) + tiles.types[1].pairs_of(heads));
  return {2.0 * products * pairs * static_cast<double>(head_size), 0};
}

void AttentionChecks::compute(Device device, const AttentionInputs& in) const {
  if (in.compute == ComputeType::int8) fail(tiles.op->name, "compute: expected fp32 or bf16, got int8");
  if (in.compute != compute_of(device, in.compute, in.relative)) {
    fail(tiles.op->name, "compute: expected fp32 with relative vectors of keys, of products or of values, got bf16");
  }
}

void AttentionChecks::dropout(const DropoutArgs& args) const {
  if (!(args.rate >= 0.0f && args.rate < 1.0f)) {
    fail(tiles.op->name, "dropout: expected a rate in [0, 1), got {}", args.rate);
  }
  if (args.rate > 0.0f && args.sample_ordinals == nullptr) {
    fail(tiles.op->name, "dropout: expected sample ordinals, got null");
  }
}

// Non-temporal stores write scores as whole 64-byte cache lines.
void AttentionChecks::alignment(const char* type, const void* pointer) const {
  if (reinterpret_cast<std::uintptr_t>(pointer) % 64 != 0) {
    fail(tiles.op->name, "scores.{}: expected memory aligned to 64 bytes (Buffer gives it)", type);
  }
}

void AttentionChecks::scores(int t, const TypeScores& scores) const {
  const TypeTiles& type = tiles.types[t];
  // A type that carries no scores needs no memory.
  if (scores.mode == ScoreMode::none) return;
  const bool half = scores.half != nullptr;
  if (!half && scores.running == nullptr && type.columns > 0) {
    fail(tiles.op->name, "scores.{}: expected running scores, got null", type.type.name);
  }
  if (half && (scores.running != nullptr || scores.mode == ScoreMode::read)) {
    fail(tiles.op->name, "scores.{}: expected 16-bit scores alone and no recomputation from them", type.type.name);
  }
  alignment(type.type.name, scores.running);
  alignment(type.type.name, scores.half);
}

void AttentionChecks::scores(int t, const TypeScoreGradients& scores) const {
  const TypeTiles& type = tiles.types[t];
  if (scores.mode == ScoreGradientMode::none || type.columns == 0) return;
  if (scores.running == nullptr || scores.gradient == nullptr) {
    fail(tiles.op->name, "scores.{}: expected running scores and their gradient, got null", type.type.name);
  }
  alignment(type.type.name, scores.running);
  alignment(type.type.name, scores.gradient);
}

void fail_scores_out_of_range(const char* op, AttentionType type, std::int64_t layer) {
  throw ScoresOutOfRange(fmt::format(
      "{}: scores.{}: layer {}: expected scores and running sums of at most {} in magnitude at every visible pair, got "
      "a larger one or one that is not a number (the model diverges; see its learning rate)",
      op, type.name, layer, kScoreLimit));
}

}  // namespace etc::sparse
