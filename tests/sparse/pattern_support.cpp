#include "tests/sparse/pattern_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "etc_core/base/random.h"
#include "sparse/attention.h"
#include "sparse/score_state.h"
#include "tests/reference/attention.h"
#include "tests/sparse/comparison.h"

namespace etc::test {

namespace {

constexpr std::uint64_t kSeed = 77;

const sparse::TypeTiles& own(const PatternCase& c) {
  return c.tiles->types[0];
}

// Numbers of one tensor. They depend on the example's ordinal and the row within the example, not on the batch.
std::vector<float> numbers(const PatternCase& c, const std::vector<std::int64_t>& offsets, std::uint64_t tensor,
                           std::int64_t layer) {
  std::vector<float> values;
  const std::uint64_t key = mix_key(mix_key(kSeed, tensor), static_cast<std::uint64_t>(layer));
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    const auto ordinal = static_cast<std::uint32_t>(c.first_ordinal + static_cast<std::int64_t>(b));
    for (std::int64_t at = 0; at < (offsets[b + 1] - offsets[b]) * c.heads * c.head_size; ++at) {
      const Philox4 bits = philox({static_cast<std::uint32_t>(at), ordinal, 0, 0}, key);
      values.push_back(4.0f * uniform_from_bits(bits[0]) - 2.0f);
    }
  }
  return values;
}

sparse::Rows rows(const PatternCase& c, const std::vector<float>& values, std::int64_t count) {
  return {values.data(), c.heads * c.head_size, count};
}
sparse::MutableRows rows(const PatternCase& c, std::vector<float>& values, std::int64_t count) {
  values.assign(static_cast<std::size_t>(count * c.heads * c.head_size), std::numeric_limits<float>::quiet_NaN());
  return {values.data(), c.heads * c.head_size, count};
}

sparse::AttentionInputs inputs_of(const PatternCase& c, const PatternLayer& layer, std::int64_t index,
                                  const std::vector<std::int64_t>& ordinals) {
  sparse::AttentionInputs in;
  in.heads = c.heads;
  in.head_size = c.head_size;
  in.q = rows(c, layer.q, own(c).queries());
  for (std::size_t t = 0; t < 2; ++t) {
    const std::int64_t keys = c.tiles->types[t].keys();
    in.keys[t] = {rows(c, layer.k[t], keys), rows(c, layer.v[t], keys)};
  }
  in.tiles = c.tiles.get();
  in.dropout = {kSeed, c.dropout, ordinals.data(), static_cast<std::uint32_t>(index)};
  return in;
}

// Index of a pair in the external form of the scores; -1: the pair is not stored.
std::int64_t external_place(const PatternCase& c, const PatternPair& pair) {
  const sparse::TypeTiles& type = own(c);
  const auto b = static_cast<std::size_t>(pair.example);
  const std::int64_t keys = type.key_offsets[b + 1] - type.key_offsets[b];
  const std::int64_t queries = type.query_offsets[b + 1] - type.query_offsets[b];
  if (type.window) {
    const std::int64_t column = pair.key - (keys - queries) - pair.query + type.before;
    if (column < 0 || column >= type.width()) return -1;
    return (pair.head * type.queries() + type.query_offsets[b] + pair.query) * type.width() + column;
  }
  std::int64_t before = 0;
  for (std::size_t e = 0; e < b; ++e) {
    before += (type.query_offsets[e + 1] - type.query_offsets[e]) * (type.key_offsets[e + 1] - type.key_offsets[e]);
  }
  return c.heads * before + (pair.head * queries + pair.query) * keys + pair.key;
}

// One head of rows [tokens, N, D].
reference::Values of_head(const PatternCase& c, const std::vector<float>& values, std::int64_t head) {
  reference::Values part;
  const std::int64_t width = c.heads * c.head_size, size = static_cast<std::int64_t>(values.size());
  part.reserve(values.size() / static_cast<std::size_t>(c.heads));
  for (std::int64_t at = head * c.head_size; at < size; at += width) {
    part.insert(part.end(), values.begin() + at, values.begin() + at + c.head_size);
  }
  return part;
}

// What one head sees, in the reference's order and terms: 0 or kMasked. The definition is asked once for all layers.
std::vector<std::uint8_t> labels_of(const PatternCase& c, std::int64_t head) {
  const sparse::TypeTiles& type = own(c);
  std::vector<std::uint8_t> labels;
  for (std::int64_t b = 0; b < type.examples(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t queries = type.query_offsets[at + 1] - type.query_offsets[at];
    const std::int64_t keys = type.key_offsets[at + 1] - type.key_offsets[at];
    std::size_t pair = labels.size();
    labels.resize(pair + static_cast<std::size_t>(queries * keys));
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) labels[pair++] = c.sees({head, b, i, j}) ? 0 : sparse::kMasked;
    }
  }
  return labels;
}

reference::Attention reference_of(const PatternCase& c, const PatternLayer& layer, std::int64_t index,
                                  std::int64_t head, const std::vector<std::uint8_t>& labels) {
  const sparse::TypeTiles& type = own(c);
  reference::Attention a;
  a.heads = 1;
  a.head_size = c.head_size;
  a.query_offsets = type.query_offsets;
  a.q = of_head(c, layer.q, head);
  a.types[0].key_offsets = type.key_offsets;
  a.types[0].k = of_head(c, layer.k[0], head);
  a.types[0].v = of_head(c, layer.v[0], head);
  a.types[0].carries = c.carries;
  if (c.running_mean) a.types[0].logit_scale = 1.0 / static_cast<double>(index + 1);
  a.types[1].key_offsets = c.tiles->types[1].key_offsets;
  a.types[0].labels = labels;
  if (c.dropout > 0.0f) {
    a.dropout = [&c, index, head](std::int64_t example, std::int64_t, std::int64_t query, int, std::int64_t key) {
      const std::uint64_t stream = dropout_key(kSeed, static_cast<std::uint64_t>(c.first_ordinal + example),
                                               static_cast<std::uint32_t>(index), c.tiles->op->dropout_site);
      const Philox4 block = dropout_block(stream, static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(query),
                                          static_cast<std::uint32_t>(key / 4));
      const bool kept = block[static_cast<std::size_t>(key % 4)] >= dropout_threshold(c.dropout);
      return kept ? 1.0 / (1.0 - static_cast<double>(c.dropout)) : 0.0;
    };
  }
  return a;
}

// D + 8 roundings of terms that sum to at most |q||k| (components are at most 2), plus half a step of C.
double score_error(const PatternCase& c) {
  const auto size = static_cast<double>(c.head_size);
  return (size + 8.0) * kUnit * 4.0 * std::sqrt(size) + 0.5 * sparse::kScoreStep;
}

// C of one head's visible pairs, others 0, in the reference's order.
reference::Values visible_running(const PatternCase& c, const std::vector<float>& external, std::int64_t head,
                                  const std::vector<std::uint8_t>& labels) {
  const sparse::TypeTiles& type = own(c);
  reference::Values values(labels.size(), 0.0);
  std::size_t pair = 0;
  for (std::int64_t b = 0; b < type.examples(); ++b) {
    const auto at = static_cast<std::size_t>(b);
    for (std::int64_t i = 0; i < type.query_offsets[at + 1] - type.query_offsets[at]; ++i) {
      for (std::int64_t j = 0; j < type.key_offsets[at + 1] - type.key_offsets[at]; ++j) {
        if (labels[pair++] == sparse::kMasked) continue;
        values[pair - 1] = external[static_cast<std::size_t>(external_place(c, {head, b, i, j}))];
      }
    }
  }
  return values;
}

// Compares visible pairs only; masked pairs may have any finite value.
void drop_masked(const reference::Attention& a, reference::Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (a.types[0].labels[i] == sparse::kMasked) values[i] = 0.0;
  }
}

}  // namespace

std::vector<PatternLayer> run_pattern(const PatternCase& c) {
  const sparse::TypeTiles& type = own(c);
  sparse::ScoreState state({c.layers, c.heads, {c.carries}, c.running_mean, true, false, c.device}, {c.tiles.get()});
  std::vector<std::int64_t> ordinals;
  for (std::int64_t b = 0; b < type.examples(); ++b) ordinals.push_back(c.first_ordinal + b);
  std::vector<PatternLayer> layers(static_cast<std::size_t>(c.layers));
  const std::int64_t queries = type.queries(), keys = type.keys();
  std::vector<std::uint8_t> bytes;
  const auto scratch = [&](std::int64_t size) {
    bytes.resize(static_cast<std::size_t>(size) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    return static_cast<void*>(bytes.data() + (64 - address % 64) % 64);
  };
  for (std::int64_t l = 0; l < c.layers; ++l) {
    PatternLayer& layer = layers[static_cast<std::size_t>(l)];
    layer.q = numbers(c, type.query_offsets, 1, l);
    layer.dout = numbers(c, type.query_offsets, 2, l);
    layer.k[0] = numbers(c, type.key_offsets, 3, l);
    layer.v[0] = numbers(c, type.key_offsets, 4, l);
    layer.lse.assign(static_cast<std::size_t>(c.heads * queries), std::numeric_limits<float>::quiet_NaN());
    const sparse::AttentionInputs in = inputs_of(c, layer, l, ordinals);
    void* const block = scratch(sparse::attention_forward_scratch_bytes(c.device, in));
    sparse::attention_forward(
        c.device, {in, state.forward(l, *c.tiles->op), rows(c, layer.out, queries), layer.lse.data(), block});
    if (!c.carries) continue;
    layer.running.resize(static_cast<std::size_t>(sparse::external_score_elements(type, c.heads)));
    state.export_running(type.type, layer.running.data());
  }
  for (std::int64_t l = c.layers - 1; l >= 0; --l) {
    PatternLayer& layer = layers[static_cast<std::size_t>(l)];
    sparse::AttentionBackward args;
    args.inputs = inputs_of(c, layer, l, ordinals);
    args.scores = state.backward(l, *c.tiles->op);
    args.out = rows(c, std::as_const(layer.out), queries);
    args.lse = layer.lse.data();
    args.dout = rows(c, std::as_const(layer.dout), queries);
    args.dq = rows(c, layer.dq, queries);
    args.dkeys[0] = {rows(c, layer.dk[0], keys), rows(c, layer.dv[0], keys)};
    args.dkeys[1] = {rows(c, layer.dk[1], 0), rows(c, layer.dv[1], 0)};
    args.scratch = scratch(sparse::attention_backward_scratch_bytes(c.device, args.inputs));
    sparse::attention_backward(c.device, args);
  }
  return layers;
}

std::string compare_pattern(const PatternCase& c, const std::vector<PatternLayer>& layers) {
  Comparison comparison;
  for (std::int64_t head = 0; head < c.heads; ++head) {
    std::vector<reference::Attention> attentions;
    std::vector<reference::Result> forwards;
    const std::vector<std::uint8_t> labels = labels_of(c, head);
    double error = 0.0;  // of a score or running sum
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const PatternLayer& layer = layers[l];
      attentions.push_back(reference_of(c, layer, static_cast<std::int64_t>(l), head, labels));
      reference::Attention& a = attentions.back();
      if (l > 0 && c.carries) a.types[0].previous = forwards.back().running[0];
      forwards.push_back(reference::forward(a));
      error = score_error(c) + (c.carries ? error : 0.0);
      // The error of p comes from its logit, the log-sum-exp, exp and the sum.
      const double p_error = 2.0 * error + (static_cast<double>(own(c).max_group_columns) + 8.0) * kUnit;
      comparison.where = fmt::format("{}, head {}, layer {}", c.name, head, l);
      comparison.check("out", of_head(c, layer.out, head), forwards.back().out, p_error * 2.0 / (1.0 - c.dropout));
      const auto lse = layer.lse.begin() + head * own(c).queries();
      comparison.check("lse", {lse, lse + own(c).queries()}, forwards.back().lse, p_error + 400.0 * kUnit);
      if (!c.carries) continue;
      reference::Values expected = forwards.back().running[0];
      drop_masked(a, expected);
      comparison.check("scores", visible_running(c, layer.running, head, labels), expected, error);
    }
    reference::Values gradient[2], mass[2];
    for (std::size_t l = layers.size(); l-- > 0;) {
      const PatternLayer& layer = layers[l];
      const reference::Gradients g = reference::backward(attentions[l], of_head(c, layer.dout, head), gradient, mass);
      const auto terms = static_cast<double>(own(c).queries() + 3 * c.head_size);
      const double relative = 4.0 * error * static_cast<double>(layers.size() - l) + (terms + 32.0) * kUnit;
      comparison.where = fmt::format("{}, head {}, layer {}", c.name, head, l);
      comparison.check("dq", of_head(c, layer.dq, head), g.dq, relative * largest(g.dq_mass));
      comparison.check("dk", of_head(c, layer.dk[0], head), g.dk[0], relative * largest(g.dk_mass[0]));
      comparison.check("dv", of_head(c, layer.dv[0], head), g.dv[0], relative * largest(g.dv_mass[0]));
      gradient[0] = g.drunning[0];
      mass[0] = g.drunning_mass[0];
    }
  }
  return comparison.worst;
}

std::string check_tiles(const PatternCase& c) {
  const sparse::TypeTiles& type = own(c);
  std::int64_t pairs = 0, seen_columns = 0;
  for (std::int64_t head = 0; head < type.heads; ++head) {
    for (std::int64_t b = 0; b < type.examples(); ++b) {
      const auto at = static_cast<std::size_t>(b);
      const std::int64_t queries = type.query_offsets[at + 1] - type.query_offsets[at];
      const std::int64_t keys = type.key_offsets[at + 1] - type.key_offsets[at];
      for (std::int64_t first = 0; first < queries; first += sparse::kGroup) {
        const std::int64_t group = type.first_group(head) + type.group_offsets[at] + first / sparse::kGroup;
        std::vector<std::uint8_t> listed(static_cast<std::size_t>(sparse::kGroup * keys), 0);
        bool inside = true;
        for (std::int64_t r = type.run_offsets[group]; r < type.run_offsets[group + 1]; ++r) {
          const sparse::TileRun& run = type.runs[r];
          for (std::int64_t j = 0; j < run.keys; ++j) {
            for (std::int64_t i = 0; i < sparse::kGroup; ++i) {
              if (((type.visible[run.column + j] >> i) & 1) == 0) continue;
              const std::int64_t key = run.first_key + j;
              inside = inside && first + i < queries && key >= 0 && key < keys;
              if (inside) listed[static_cast<std::size_t>(i * keys + key)] = 1;
            }
          }
        }
        if (!inside) return fmt::format("{}: head {}, example {}, query {}: a pair beyond it", c.name, head, b, first);
        pairs += std::count(listed.begin(), listed.end(), 1);
        // The steps whose keys any query of the group sees.
        std::vector<std::uint8_t> steps(static_cast<std::size_t>(keys / sparse::kRunStep + 1), 0);
        for (std::int64_t i = first; i < std::min<std::int64_t>(queries, first + sparse::kGroup); ++i) {
          for (std::int64_t j = 0; j < keys; ++j) {
            const bool sees = c.sees({head, b, i, j});
            if (sees) steps[static_cast<std::size_t>(j / sparse::kRunStep)] = 1;
            if (sees == (listed[static_cast<std::size_t>((i - first) * keys + j)] != 0)) continue;
            return fmt::format("{}: head {}, example {}, query {}, key {}: expected {}", c.name, head, b, i, j, sees);
          }
        }
        // A window's steps may begin at any key: allow one more step per range.
        seen_columns += (std::count(steps.begin(), steps.end(), 1) + (type.window ? 1 : 0)) * sparse::kRunStep;
      }
    }
  }
  if (pairs != type.visible_pairs) return fmt::format("{}: {} pairs, counted {}", c.name, pairs, type.visible_pairs);
  if (type.columns > seen_columns || (!type.window && type.columns != seen_columns)) {
    return fmt::format("{}: {} columns for {} needed", c.name, type.columns, seen_columns);
  }
  return "";
}

std::string different_bits(const PatternCase& c, const std::vector<PatternLayer>& batch, std::size_t b,
                           const std::vector<PatternLayer>& alone) {
  std::string names;
  const auto compare = [&](const char* name, const std::vector<float>& all, const std::vector<std::int64_t>& offsets,
                           const std::vector<float>& one) {
    const std::int64_t first = offsets[b] * c.heads * c.head_size;
    if (!std::equal(one.begin(), one.end(), all.begin() + first)) names += std::string(name) + " ";
  };
  for (std::size_t l = 0; l < batch.size(); ++l) {
    compare("out", batch[l].out, own(c).query_offsets, alone[l].out);
    compare("dq", batch[l].dq, own(c).query_offsets, alone[l].dq);
    compare("dk", batch[l].dk[0], own(c).key_offsets, alone[l].dk[0]);
    compare("dv", batch[l].dv[0], own(c).key_offsets, alone[l].dv[0]);
  }
  return names;
}

}  // namespace etc::test
