#include "bench/cases/attention.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"
#include "etc_core/base/random.h"

namespace etc::bench {

namespace {

constexpr float kGuard = -12345.0f;

// Standard normal numbers from the counter-based generator (Box and Muller).
float normal(std::uint64_t key, std::int64_t index) {
  const Philox4 bits = philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0}, key);
  const float u = 1.0f - uniform_from_bits(bits[0]);
  return std::sqrt(-2.0f * std::log(u)) * std::cos(6.2831853f * uniform_from_bits(bits[1]));
}

float uniform(std::uint64_t key, std::int64_t index) {
  return uniform_from_bits(
      philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 1, 0}, key)[0]);
}

void fill(RowBuffer& rows, std::uint64_t key, float magnitude) {
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::int64_t c = 0; c < rows.width; ++c) {
      rows.values[r * rows.stride + c] = magnitude * normal(key, r * rows.width + c);
    }
  }
}

std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> result{0};
  for (std::int64_t length : lengths) result.push_back(result.back() + length);
  return result;
}

// Relative ids of the reference (etc-core 4.1): right 1 … k, left k+1 … 2k.
std::uint8_t distance_label(std::int64_t distance, std::int64_t k) {
  return static_cast<std::uint8_t>(distance >= 0 ? std::min(distance, k) : k + std::min(-distance, k));
}

std::uint8_t document_label(const AttentionCase& c, sparse::AttentionType type, std::int64_t length,
                            std::int64_t globals, std::int64_t query, std::int64_t key) {
  const std::int64_t k = std::max<std::int64_t>(0, (c.relative_labels - 4) / 2);
  if (type == sparse::kL2l || type == sparse::kG2g) return distance_label(key - query, k);
  const std::int64_t token = type == sparse::kL2g ? query : key;
  const std::int64_t global = type == sparse::kL2g ? key : query;
  const bool member = token * globals / length == global;
  if (!member && c.labels == Labels::hard && type == sparse::kG2l) return sparse::kMasked;
  return static_cast<std::uint8_t>(2 * k + 1 + (member ? 1 : 0));
}

std::uint8_t scattered_label(const AttentionCase& c, std::uint64_t key_of_type, std::int64_t b, std::int64_t query,
                             std::int64_t key) {
  const std::int64_t pair = (b * 100003 + query) * 100003 + key;
  const std::int64_t tile = (b * 100003 + query / sparse::kGroup) * 100003 + key / (2 * sparse::kRunStep);
  const bool masked_row = uniform(key_of_type + 1, b * 100003 + query) < 0.1f;
  if (masked_row || uniform(key_of_type + 2, tile) < 0.3f || uniform(key_of_type + 3, pair) < 0.2f)
    return sparse::kMasked;
  const auto labels = static_cast<float>(std::max<std::int64_t>(1, c.relative_labels));
  return static_cast<std::uint8_t>(uniform(key_of_type + 4, pair) * labels);
}

}  // namespace

Structure::Structure(const AttentionCase& c)
    : long_offsets(offsets(c.lengths)),
      global_offsets(offsets(c.globals)),
      radius_(c.radius),
      relative_labels_(c.distances.rows.empty() ? c.relative_labels : 0) {
  for (const sparse::AttentionType& type : sparse::kEtcTypes) {
    if (c.labels == Labels::none) break;
    const auto t = static_cast<std::size_t>(type.index);
    const bool from_long = type == sparse::kL2l || type == sparse::kL2g;
    const bool to_long = type == sparse::kL2l || type == sparse::kG2l;
    const bool window = type == sparse::kL2l;
    for (std::size_t b = 0; b < c.lengths.size(); ++b) {
      const std::int64_t length = c.lengths[b], globals = c.globals[b];
      const std::int64_t queries = from_long ? length : globals, keys = to_long ? length : globals;
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t begin = window ? i - c.radius : 0, end = window ? i + c.radius + 1 : keys;
        for (std::int64_t j = begin; j < end; ++j) {
          const bool inside = j >= 0 && j < keys;
          const auto example = static_cast<std::int64_t>(b);
          labels[t].push_back(!inside ? sparse::kMasked
                              : c.labels == Labels::scattered
                                  ? scattered_label(c, mix_key(c.seed, 100 + 10 * t), example, i, j)
                                  : document_label(c, type, length, globals, i, j));
        }
      }
    }
  }
  long_tiles = sparse::build_long_tiles(tensors());
  global_tiles = sparse::build_global_tiles(tensors());
  if (c.distances.rows.empty()) return;
  for (sparse::AttentionTiles* op : {&long_tiles, &global_tiles}) {
    for (sparse::TypeTiles& type : op->types) sparse::label_by_distance(type, c.distances, c.shifts);
  }
}

sparse::LabelTensors Structure::tensors() const {
  const auto data = [&](sparse::AttentionType type) {
    const auto& tensor = labels[type.index];
    return tensor.empty() ? nullptr : tensor.data();
  };
  return {static_cast<std::int64_t>(long_offsets.size()) - 1,
          long_offsets.data(),
          global_offsets.data(),
          radius_,
          relative_labels_,
          data(sparse::kL2l),
          data(sparse::kL2g),
          data(sparse::kG2g),
          data(sparse::kG2l)};
}

void Structure::build_tiles() const {
  sparse::build_long_tiles(tensors());
  sparse::build_global_tiles(tensors());
}

const sparse::TypeTiles& Structure::tiles(sparse::AttentionType type) const {
  for (const sparse::AttentionTiles* op : operators()) {
    for (const sparse::TypeTiles& own : op->types) {
      if (own.type == type) return own;
    }
  }
  fail("cases", "type {}: expected one of ETC's", type.name);
}

RowBuffer::RowBuffer(std::int64_t rows, std::int64_t row_width, std::int64_t padding)
    : values(rows * (row_width + padding) + padding, Purpose::activations),
      stride(row_width + padding),
      count(rows),
      width(row_width) {
  std::fill(values.begin(), values.end(), kGuard);
}

bool RowBuffer::guards_intact() const {
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t c = width; c < stride; ++c) {
      if (values[r * stride + c] != kGuard) return false;
    }
  }
  for (std::int64_t i = count * stride; i < values.size(); ++i) {
    if (values[i] != kGuard) return false;
  }
  return true;
}

AttentionProblem::AttentionProblem(const AttentionCase& c, std::shared_ptr<const Structure> shared, Side which,
                                   std::uint32_t layer_index)
    : setup(c), structure(std::move(shared)), side(which), layer(layer_index) {
  const std::int64_t width = c.heads * c.head_size, pad = c.row_padding;
  const std::int64_t queries = side == Side::long_side ? structure->longs() : structure->globals();
  const std::int64_t others = side == Side::long_side ? structure->globals() : structure->longs();
  const std::uint64_t key = mix_key(mix_key(c.seed, layer), static_cast<std::uint64_t>(side));
  q = RowBuffer(queries, width, pad);
  dout = RowBuffer(queries, width, pad);
  out = RowBuffer(queries, width, pad);
  dq = RowBuffer(queries, width, pad);
  fill(q, key + 1, c.magnitude);
  fill(dout, key + 2, 1.0f);
  for (int t = 0; t < 2; ++t) {
    const std::int64_t keys = t == 0 ? queries : others;
    k[t] = RowBuffer(keys, width, pad);
    v[t] = RowBuffer(keys, width, pad);
    dk[t] = RowBuffer(keys, width, pad);
    dv[t] = RowBuffer(keys, width, pad);
    fill(k[t], key + 3 + static_cast<std::uint64_t>(t), c.magnitude);
    fill(v[t], key + 5 + static_cast<std::uint64_t>(t), 1.0f);
  }
  make_tables(key);
  lse = Buffer<float>(c.heads * queries, Purpose::activations);
  for (std::size_t b = 0; b < c.lengths.size(); ++b) ordinals.push_back(1000 + static_cast<std::int64_t>(b));
}

void AttentionProblem::make_tables(std::uint64_t key) {
  const RelativeParts& parts = setup.parts;
  const std::int64_t rows = setup.relative_labels * (parts.shared_heads ? 1 : setup.heads);
  const float m = setup.magnitude;
  const auto make = [&](bool has, std::int64_t size, Buffer<float>& table, Buffer<float>& gradient, std::uint64_t of,
                        float mean, float magnitude) {
    table = Buffer<float>(has ? rows * size : 0, Purpose::weights);
    gradient = Buffer<float>(table.size(), Purpose::gradients);
    for (std::int64_t i = 0; i < table.size(); ++i) table[i] = mean + magnitude * normal(of, i);
    gradient.zero();
  };
  const std::int64_t size = setup.head_size;
  make(true, size, rel, drel, key + 7, 0.0f, 0.5f * m);
  make(true, 1, rel_bias, drel_bias, key + 8, 0.0f, m);
  make(parts.key_vectors, size, rel_k, drel_k, key + 9, 0.0f, 0.5f * m);
  make(parts.factors, 1, factor, dfactor, key + 10, 1.0f, 0.5f);
  make(parts.products, size, product, dproduct, key + 11, 1.0f, 0.5f);
  make(parts.value_vectors, size, rel_v, drel_v, key + 12, 0.0f, 0.5f);
}

double AttentionProblem::useful_operations(int products) const {
  const auto pairs = static_cast<double>(tiles(0).visible_pairs + tiles(1).visible_pairs);
  return 2.0 * products * static_cast<double>(setup.head_size * setup.heads) * pairs;
}

sparse::AttentionInputs AttentionProblem::inputs() const {
  const RelativeParts& parts = setup.parts;
  const auto table = [&](bool has, const Buffer<float>& rows) {
    return has && setup.relative_labels > 0 ? rows.data() : nullptr;
  };
  return {setup.heads,
          setup.head_size,
          q.rows(),
          {{k[0].rows(), v[0].rows()}, {k[1].rows(), v[1].rows()}},
          {table(parts.vectors, rel), table(parts.biases, rel_bias), setup.relative_labels,
           table(parts.key_vectors, rel_k), table(parts.factors, factor), table(parts.products, product),
           table(parts.value_vectors, rel_v), parts.shared_heads},
          &tiles(),
          {setup.seed, setup.dropout, ordinals.data(), layer},
          setup.compute,
          setup.scale};
}

void* AttentionProblem::scratch(std::int64_t bytes) {
  if (scratch_.size() < bytes) scratch_ = Buffer<std::uint8_t>(bytes, Purpose::scratch);
  return scratch_.data();
}

void AttentionProblem::forward(const sparse::TypeScores& first, const sparse::TypeScores& second) {
  const sparse::AttentionInputs in = inputs();
  void* block = scratch(sparse::attention_forward_scratch_bytes(device, in));
  sparse::attention_forward(device, {in, {first, second}, out.mutable_rows(), lse.data(), block});
}

void AttentionProblem::backward(const sparse::TypeScoreGradients& first, const sparse::TypeScoreGradients& second) {
  const sparse::AttentionInputs in = inputs();
  const auto gradient = [](const float* part, Buffer<float>& of) { return part == nullptr ? nullptr : of.data(); };
  const sparse::RelativeTableGradients tables{
      gradient(in.relative.vectors, drel),       gradient(in.relative.biases, drel_bias),
      gradient(in.relative.key_vectors, drel_k), gradient(in.relative.factors, dfactor),
      gradient(in.relative.products, dproduct),  gradient(in.relative.value_vectors, drel_v)};
  void* block = scratch(sparse::attention_backward_scratch_bytes(device, in));
  sparse::attention_backward(
      device, {in,
               {first, second},
               out.rows(),
               lse.data(),
               dout.rows(),
               dq.mutable_rows(),
               {{dk[0].mutable_rows(), dv[0].mutable_rows()}, {dk[1].mutable_rows(), dv[1].mutable_rows()}},
               tables,
               block});
}

}  // namespace etc::bench
