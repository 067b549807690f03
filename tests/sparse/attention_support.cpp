#include "tests/sparse/attention_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "etc_core/base/bf16.h"
#include "etc_core/base/random.h"
#include "tests/sparse/comparison.h"

namespace etc::test {

namespace {

reference::Values doubles(const bench::RowBuffer& rows) {
  reference::Values values;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::int64_t c = 0; c < rows.width; ++c) values.push_back(rows.at(r, c));
  }
  return values;
}

reference::Values doubles(const Buffer<float>& buffer) {
  return {buffer.begin(), buffer.end()};
}

// Largest Euclidean norm of any vector of `size` components.
double largest_norm(const reference::Values& values, std::int64_t size) {
  double result = 0.0;
  for (std::size_t i = 0; i < values.size(); i += static_cast<std::size_t>(size)) {
    double sum = 0.0;
    for (std::size_t d = i; d < i + static_cast<std::size_t>(size); ++d) sum += values[d] * values[d];
    result = std::max(result, std::sqrt(sum));
  }
  return result;
}

// Bound for the error of one layer's score: D + 8 roundings of terms whose magnitudes sum to at most
// |q| (m |k| + |rel|) + |k| |rel_k| + |bias| (Cauchy-Schwarz; m: the largest factor or number of w), plus half a step
// of the running scores.
double score_error(const reference::Attention& a) {
  double keys = 0.0;
  for (const auto& type : a.types) keys = std::max(keys, largest_norm(type.k, a.head_size));
  const double of_keys = a.factor.empty() && a.product.empty() ? 1.0 : std::max(largest(a.factor), largest(a.product));
  const double mass = largest_norm(a.q, a.head_size) * (of_keys * keys + largest_norm(a.rel, a.head_size)) +
                      keys * largest_norm(a.rel_k, a.head_size) + largest(a.rel_bias);
  const double scale = a.scale > 0.0 ? a.scale : 1.0 / std::sqrt(static_cast<double>(a.head_size));
  return (static_cast<double>(a.head_size) + 8.0) * kUnit * mass * scale + 0.5 * sparse::kScoreStep;
}

// Keeps the running scores of visible pairs only; masked pairs may have any finite value.
void drop_masked(const reference::Attention& a, int t, std::int64_t heads, reference::Values& values) {
  const auto& type = a.types[t];
  if (type.labels.empty()) return;
  if (type.window) {
    const std::size_t pairs = type.labels.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type.labels[i % pairs] == sparse::kMasked) values[i] = 0.0;
    }
    return;
  }
  std::size_t label = 0, element = 0;
  for (std::size_t b = 0; b + 1 < a.query_offsets.size(); ++b) {
    const auto pairs = static_cast<std::size_t>((a.query_offsets[b + 1] - a.query_offsets[b]) *
                                                (type.key_offsets[b + 1] - type.key_offsets[b]));
    for (std::size_t i = 0; i < pairs * static_cast<std::size_t>(heads); ++i) {
      if (type.labels[label + i % pairs] == sparse::kMasked) values[element + i] = 0.0;
    }
    label += pairs;
    element += pairs * static_cast<std::size_t>(heads);
  }
}

}  // namespace

namespace {

AttentionCase with_parts(AttentionCase c, const bench::RelativeParts& parts) {
  c.parts = parts;
  return c;
}

AttentionCase shifted(AttentionCase c, std::vector<std::int64_t> shifts, float scale) {
  c.shifts = std::move(shifts);
  c.scale = scale;
  return c;
}

}  // namespace

// {name, lengths, globals, radius, N, D, R, labels, magnitude, dropout, padding, seed}
const std::vector<AttentionCase>& attention_cases() {
  static const std::vector<AttentionCase> all = {
      {"one token, no globals", {1}, {0}, 3, 2, 8, 0, Labels::none},
      {"one token each", {1}, {1}, 5, 1, 4, 6, Labels::document},
      {"one-token examples", {1, 1, 1}, {1, 2, 0}, 2, 2, 6, 8, Labels::document, 1.0f, 0.0f, 3},
      {"shorter than the radius", {5}, {3}, 9, 2, 10, 9, Labels::document},
      {"no globals", {70}, {0}, 7, 2, 16, 12, Labels::document},
      {"no long tokens", {0}, {20}, 4, 2, 16, 12, Labels::document},
      {"an example without anything", {9, 0, 5}, {4, 0, 3}, 3, 2, 8, 8, Labels::document},
      {"window covers the input", {40}, {6}, 64, 2, 16, 32, Labels::document},
      {"no labels", {90}, {10}, 12, 2, 32, 0, Labels::none},
      {"labels only mask", {60}, {12}, 9, 2, 16, 0, Labels::scattered},
      {"document, D = 64", {130}, {23}, 20, 2, 64, 32, Labels::document},
      {"hard g2l", {200}, {20}, 12, 1, 16, 12, Labels::hard},
      {"scattered masks and labels", {75, 33}, {17, 40}, 11, 2, 16, 32, Labels::scattered, 1.0f, 0.0f, 7},
      {"three examples of very different length", {150, 3, 40}, {9, 33, 1}, 8, 2, 24, 14, Labels::scattered},
      {"D = 1", {37}, {5}, 4, 2, 1, 7, Labels::scattered},
      {"D = 2", {37}, {5}, 4, 2, 2, 7, Labels::scattered},
      {"D = 6", {37}, {5}, 4, 3, 6, 9, Labels::scattered, 1.0f, 0.0f, 1},
      {"D = 10", {37}, {5}, 4, 2, 10, 9, Labels::scattered},
      {"D = 80", {50}, {7}, 6, 1, 80, 9, Labels::document},
      {"R odd and large", {60}, {20}, 30, 1, 16, 57, Labels::scattered},
      {"R of 255", {40}, {9}, 12, 1, 8, 255, Labels::scattered},
      {"radius 0", {30}, {4}, 0, 1, 8, 5, Labels::document},
      {"several segments", {1200}, {5}, 9, 1, 4, 8, Labels::document},
      {"radius beyond a segment", {1100}, {2}, 600, 1, 2, 8, Labels::document},
      {"several key splits", {1100}, {18}, 2, 1, 4, 8, Labels::hard},
      {"scores near 88", {64}, {8}, 10, 1, 16, 8, Labels::scattered, 5.0f},
      {"tiny scores", {64}, {8}, 10, 1, 16, 8, Labels::scattered, 1e-3f},
      {"dropout", {60, 21}, {13, 6}, 7, 2, 16, 9, Labels::scattered, 1.0f, 0.3f},
      {"dropout without labels", {45}, {10}, 5, 2, 8, 0, Labels::none, 1.0f, 0.1f},
      with_parts({"biases alone", {60, 21}, {13, 6}, 7, 2, 16, 9, Labels::scattered}, {false, true}),
  };
  return all;
}

namespace {

// A case with labels by distance and these tables.
AttentionCase by_distance(AttentionCase c, const sparse::DistanceMap& map, const bench::RelativeParts& parts) {
  c.distances = map;
  c.relative_labels = static_cast<std::int64_t>(*std::max_element(map.rows.begin(), map.rows.end())) + 1;
  c.parts = parts;
  return c;
}

// Clipped distances -k … k to rows 0 … 2k.
sparse::DistanceMap clipped(std::int64_t k) {
  sparse::DistanceMap map{-k, {}};
  for (std::uint32_t row = 0; row <= 2 * k; ++row) map.rows.push_back(row);
  return map;
}

}  // namespace

// vectors, biases, key_vectors, factors, products, value_vectors, shared_heads
const std::vector<AttentionCase>& term_cases() {
  const AttentionCase listed{"listed labels", {60, 21}, {13, 6}, 7, 2, 16, 9, Labels::scattered};
  const AttentionCase document{"document", {75}, {23}, 20, 2, 24, 32, Labels::document};
  const AttentionCase masks{"masks", {70, 21}, {18, 6}, 9, 2, 10, 0, Labels::scattered};
  const AttentionCase open{"open", {90}, {20}, 80, 2, 16, 0, Labels::none};
  const auto dropped = [](AttentionCase c) {
    c.dropout = 0.2f;
    return c;
  };
  static const std::vector<AttentionCase> all = {
      with_parts(listed, {true, true, false, false, false, false, true}),
      with_parts(listed, {false, false, true}),
      with_parts(listed, {false, false, false, true}),
      with_parts(document, {false, false, false, false, true}),
      with_parts(listed, {false, false, false, false, false, true}),
      with_parts(dropped(listed), {true, true, true, false, true, true}),
      with_parts(dropped(document), {true, true, true, true, false, true, true}),
      by_distance(masks, clipped(3), {true, true}),
      by_distance(masks, clipped(0), {true, false}),
      by_distance(open, clipped(80), {true, false, true}),
      by_distance(open, clipped(5), {true, false, false, false, false, true, true}),
      by_distance(dropped(masks), {-4, {3, 3, 1, 1, 0, 2, 2, 2, 5}}, {false, true, false, true, false, true}),
      by_distance(masks, {0, {0, 1, 2, 3, 4, 5, 6}}, {true, true, true, false, true, true, true}),
      by_distance({"R beyond a byte", {600}, {3}, 599, 1, 2, 0, Labels::none}, clipped(599), {true, true}),
      shifted(by_distance(masks, clipped(6), {true, true, true, true, false, true}), {-9, 30}, 0.7f),
  };
  return all;
}

std::string describe(const AttentionCase& c, Side side) {
  return fmt::format("{} ({})", c.name, side == Side::long_side ? "long_attention" : "global_attention");
}

reference::Attention reference_of(const AttentionProblem& problem) {
  const AttentionCase& c = problem.setup;
  const bool is_long = problem.side == Side::long_side;
  const auto& own = is_long ? problem.structure->long_offsets : problem.structure->global_offsets;
  const auto& other = is_long ? problem.structure->global_offsets : problem.structure->long_offsets;
  reference::Attention a;
  a.heads = c.heads;
  a.head_size = c.head_size;
  a.relative_labels = c.relative_labels;
  a.query_offsets = own;
  a.q = doubles(problem.q);
  a.rel = doubles(problem.rel);
  a.rel_bias = doubles(problem.rel_bias);
  if (!c.parts.vectors) a.rel.assign(a.rel.size(), 0.0);
  if (!c.parts.biases) a.rel_bias.assign(a.rel_bias.size(), 0.0);
  a.rel_k = doubles(problem.rel_k);
  a.factor = doubles(problem.factor);
  a.product = doubles(problem.product);
  a.rel_v = doubles(problem.rel_v);
  a.shared_heads = c.parts.shared_heads;
  a.scale = static_cast<double>(c.scale);
  for (int t = 0; t < 2; ++t) {
    a.types[t].key_offsets = t == 0 ? own : other;
    a.types[t].k = doubles(problem.k[t]);
    a.types[t].v = doubles(problem.v[t]);
    a.types[t].labels = problem.structure->labels[problem.type(t).index];
    a.types[t].window = problem.tiles(t).window;
    a.types[t].radius = c.radius;
    a.types[t].distance_rows = {c.distances.rows.begin(), c.distances.rows.end()};
    a.types[t].first_distance = c.distances.first;
    a.types[t].shifts = c.shifts;
  }
  if (c.dropout > 0.0f) {
    const auto site = is_long ? DropoutSite::long_attention : DropoutSite::global_attention;
    a.dropout = [&problem, own, site](std::int64_t example, std::int64_t head, std::int64_t query, int type,
                                      std::int64_t key) {
      const auto b = static_cast<std::size_t>(example);
      const std::uint64_t stream =
          dropout_key(problem.setup.seed, static_cast<std::uint64_t>(problem.ordinals[b]), problem.layer, site);
      const std::int64_t c_index = type == 0 ? key : own[b + 1] - own[b] + key;
      const Philox4 block = dropout_block(stream, static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(query),
                                          static_cast<std::uint32_t>(c_index / 4));
      const bool kept = block[static_cast<std::size_t>(c_index % 4)] >= dropout_threshold(problem.setup.dropout);
      return kept ? 1.0 / (1.0 - static_cast<double>(problem.setup.dropout)) : 0.0;
    };
  }
  return a;
}

namespace {

sparse::ScoreOptions options_of(const Stack& stack) {
  return {stack.layers, stack.attention_case.heads, stack.types, stack.running_mean, true, false};
}

void forward_layer(sparse::ScoreState& state, AttentionProblem& problem, bool recompute) {
  const sparse::AttentionOperator& op = *problem.tiles().op;
  const auto scores = recompute ? state.recompute(problem.layer, op) : state.forward(problem.layer, op);
  problem.forward(scores[0], scores[1]);
}

void backward_layer(sparse::ScoreState& state, AttentionProblem& problem) {
  const auto scores = state.backward(problem.layer, *problem.tiles().op);
  problem.backward(scores[0], scores[1]);
}

// For bf16 products the inputs are rounded beforehand, so that the products are exact and the reference gets the same
// numbers.
void multiply_in_bf16(AttentionProblem& problem) {
  problem.setup.compute = ComputeType::bf16;
  for (bench::RowBuffer* rows :
       {&problem.q, &problem.k[0], &problem.k[1], &problem.v[0], &problem.v[1], &problem.dout}) {
    for (std::int64_t r = 0; r < rows->count; ++r) {
      for (std::int64_t c = 0; c < rows->width; ++c) {
        float& value = rows->values[r * rows->stride + c];
        value = float_from_bf16(bf16_from_float(value));
      }
    }
  }
  for (float& value : problem.rel) value = float_from_bf16(bf16_from_float(value));
}

}  // namespace

StackResult run_stack(const Stack& stack) {
  StackResult result;
  result.structure = std::make_shared<const Structure>(stack.attention_case);
  sparse::ScoreState state(options_of(stack), result.structure->operators());
  for (std::int64_t l = 0; l < stack.layers; ++l) {
    result.layers.push_back(std::make_unique<AttentionProblem>(stack.attention_case, result.structure, stack.side,
                                                               static_cast<std::uint32_t>(l)));
    result.layers.back()->device = stack.device;
    if (stack.bf16) multiply_in_bf16(*result.layers.back());
    forward_layer(state, *result.layers.back(), false);
    result.running.emplace_back();
    for (int t = 0; t < 2; ++t) {
      const auto type = result.layers.back()->type(t);
      if (!state.carries(type)) continue;
      auto& external = result.running.back()[static_cast<std::size_t>(t)];
      const auto size = sparse::external_score_elements(result.structure->tiles(type), stack.attention_case.heads);
      external.resize(static_cast<std::size_t>(size));
      state.export_running(type, external.data());
    }
  }
  for (std::int64_t l = stack.layers - 1; l >= 0; --l) {
    AttentionProblem& problem = *result.layers[static_cast<std::size_t>(l)];
    if (stack.recompute) forward_layer(state, problem, true);
    backward_layer(state, problem);
  }
  for (int t = 0; t < 2; ++t) {
    const auto type = result.layers.front()->type(t);
    if (!state.carries(type)) continue;
    auto& external = result.gradient[static_cast<std::size_t>(t)];
    external.resize(static_cast<std::size_t>(
        sparse::external_score_elements(result.structure->tiles(type), stack.attention_case.heads)));
    state.export_gradient(type, external.data());
  }
  return result;
}

std::string compare_with_reference(const Stack& stack, const StackResult& result) {
  std::vector<reference::Attention> attentions;
  std::vector<reference::Result> forwards;
  double error = 0.0;  // of a score or running sum, after each layer
  // Probabilities (and gradients of scores) are rounded to bf16 before they are multiplied.
  const double rounding = stack.bf16 ? 0x1p-8 : 0.0;
  // The CPU computes powers of two in bf16 with a cubic polynomial.
  const double power = stack.bf16 && stack.device == Device::cpu ? 1.2e-4 : 0.0;
  std::vector<double> errors;
  Comparison comparison{describe(stack.attention_case, stack.side), ""};
  for (std::size_t l = 0; l < result.layers.size(); ++l) {
    const AttentionProblem& problem = *result.layers[l];
    attentions.push_back(reference_of(problem));
    reference::Attention& a = attentions.back();
    bool carries = false;
    for (int t = 0; t < 2; ++t) {
      const auto index = static_cast<std::size_t>(problem.type(t).index);
      a.types[t].carries = index < stack.types.size() && stack.types[index];
      carries = carries || a.types[t].carries;
      if (stack.running_mean) a.types[t].logit_scale = 1.0 / static_cast<double>(l + 1);
      if (l > 0 && a.types[t].carries) a.types[t].previous = forwards.back().running[t];
    }
    forwards.push_back(reference::forward(a));
    error = score_error(a) + (carries ? error : 0.0);
    errors.push_back(error);
    const reference::Result& expected = forwards.back();
    const double columns = static_cast<double>(problem.tiles(0).max_group_columns + problem.tiles(1).max_group_columns);
    // The error of p comes from its logit and the log-sum-exp (each at most `error`), from exp and from the sum.
    const double p_error = 2.0 * error + (columns + 8.0) * kUnit;
    const double values = (std::max(largest(a.types[0].v), largest(a.types[1].v)) + largest(a.rel_v)) /
                          (1.0 - stack.attention_case.dropout);
    comparison.where = fmt::format("{}, layer {}", describe(stack.attention_case, stack.side), l);
    comparison.check("out", doubles(problem.out), expected.out, (p_error + rounding) * values);
    comparison.check("lse", doubles(problem.lse), expected.lse, p_error + power + 4.0 * kUnit * 100.0);
    for (int t = 0; t < 2; ++t) {
      if (!a.types[t].carries) continue;
      const auto& got = result.running[l][static_cast<std::size_t>(t)];
      reference::Values exported(got.begin(), got.end()), running = expected.running[t];
      drop_masked(a, t, a.heads, exported);
      drop_masked(a, t, a.heads, running);
      comparison.check(fmt::format("scores.{}", problem.type(t).name), exported, running, error);
    }
  }

  reference::Values running_gradient[2], running_mass[2];
  for (std::size_t l = result.layers.size(); l-- > 0;) {
    const AttentionProblem& problem = *result.layers[l];
    const reference::Gradients g =
        reference::backward(attentions[l], doubles(problem.dout), running_gradient, running_mass);
    // Every gradient is a sum of products of p, dp - delta and inputs: p has a relative error of 2 * error, the sums an
    // error proportional to their number of terms, and dC includes the errors of the layers above.
    const double terms = static_cast<double>(problem.q.count + problem.k[1].count + 3 * problem.setup.head_size);
    const double relative =
        4.0 * errors.back() * static_cast<double>(result.layers.size() - l) + (terms + 32.0) * kUnit + 2.0 * rounding;
    comparison.where = fmt::format("{}, layer {}", describe(stack.attention_case, stack.side), l);
    comparison.check("dq", doubles(problem.dq), g.dq, relative * largest(g.dq_mass));
    for (int t = 0; t < 2; ++t) {
      const char* type = problem.type(t).name;
      comparison.check(fmt::format("dk of {}", type), doubles(problem.dk[t]), g.dk[t],
                       relative * largest(g.dk_mass[t]));
      comparison.check(fmt::format("dv of {}", type), doubles(problem.dv[t]), g.dv[t],
                       relative * largest(g.dv_mass[t]));
      running_gradient[t] = g.drunning[t];
      running_mass[t] = g.drunning_mass[t];
    }
    if (stack.attention_case.parts.vectors) {
      comparison.check("drel", doubles(problem.drel), g.drel, relative * largest(g.drel_mass));
    }
    if (stack.attention_case.parts.biases) {
      comparison.check("drel_bias", doubles(problem.drel_bias), g.drel_bias, relative * largest(g.drel_bias_mass));
    }
    comparison.check("drel_k", doubles(problem.drel_k), g.drel_k, relative * largest(g.drel_k_mass));
    comparison.check("dfactor", doubles(problem.dfactor), g.dfactor, relative * largest(g.dfactor_mass));
    comparison.check("dw", doubles(problem.dproduct), g.dproduct, relative * largest(g.dproduct_mass));
    comparison.check("drel_v", doubles(problem.drel_v), g.drel_v, relative * largest(g.drel_v_mass));
    if (l > 0) continue;
    for (int t = 0; t < 2; ++t) {
      if (!attentions[l].types[t].carries) continue;
      const auto& got = result.gradient[static_cast<std::size_t>(t)];
      comparison.check(fmt::format("dscores of {}", problem.type(t).name), reference::Values(got.begin(), got.end()),
                       g.drunning[t], relative * largest(g.drunning_mass[t]));
    }
  }
  return comparison.worst;
}

bool same_bits(const Buffer<float>& a, const Buffer<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0);
}

std::string different_results(const AttentionProblem& a, const AttentionProblem& b) {
  std::string names;
  const auto compare = [&](const char* name, const Buffer<float>& x, const Buffer<float>& y) {
    if (!same_bits(x, y)) names += std::string(name) + " ";
  };
  compare("out", a.out.values, b.out.values);
  compare("lse", a.lse, b.lse);
  compare("dq", a.dq.values, b.dq.values);
  for (int t = 0; t < 2; ++t) {
    compare(t == 0 ? "dk[0]" : "dk[1]", a.dk[t].values, b.dk[t].values);
    compare(t == 0 ? "dv[0]" : "dv[1]", a.dv[t].values, b.dv[t].values);
  }
  compare("drel", a.drel, b.drel);
  compare("drel_bias", a.drel_bias, b.drel_bias);
  compare("drel_k", a.drel_k, b.drel_k);
  compare("dfactor", a.dfactor, b.dfactor);
  compare("dw", a.dproduct, b.dproduct);
  compare("drel_v", a.drel_v, b.drel_v);
  return names;
}

}  // namespace etc::test
