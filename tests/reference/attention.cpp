#include "tests/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace etc::reference {

namespace {

// One existing pair of a query.
struct Pair {
  int type;
  std::int64_t key;      // row of k and v
  std::int64_t element;  // of the external form
  int label;             // -1: no relative term
  bool visible;
  std::int64_t key_in_example;
};

struct Query {
  std::int64_t example, row, in_example;
};

std::vector<Query> queries_of(const Attention& a) {
  std::vector<Query> queries;
  for (std::size_t b = 0; b + 1 < a.query_offsets.size(); ++b) {
    for (std::int64_t row = a.query_offsets[b]; row < a.query_offsets[b + 1]; ++row) {
      queries.push_back({static_cast<std::int64_t>(b), row, row - a.query_offsets[b]});
    }
  }
  return queries;
}

bool has_tables(const Attention& a) {
  for (const Values* table : {&a.rel, &a.rel_bias, &a.rel_k, &a.factor, &a.product, &a.rel_v}) {
    if (!table->empty()) return true;
  }
  return false;
}

// The table row of a visible pair; -1: none.
int label_of(const Attention& a, const KeyType& type, const Query& query, std::int64_t key, int listed) {
  if (!has_tables(a)) return -1;
  if (type.distance_rows.empty()) return type.labels.empty() ? -1 : listed;
  const std::int64_t shift = type.shifts.empty() ? 0 : type.shifts[static_cast<std::size_t>(query.example)];
  const std::int64_t place = key - query.in_example + shift - type.first_distance;
  const auto last = static_cast<std::int64_t>(type.distance_rows.size()) - 1;
  return static_cast<int>(type.distance_rows[static_cast<std::size_t>(std::clamp<std::int64_t>(place, 0, last))]);
}

// Which pairs are listed beside the visible ones: those whose scores are carried on, or none.
enum class Masked { carried, none };

std::vector<Pair> pairs_of(const Attention& a, const Query& query, std::int64_t head, Masked masked) {
  std::vector<Pair> pairs;
  const auto b = static_cast<std::size_t>(query.example);
  const std::int64_t queries = a.query_offsets[b + 1] - a.query_offsets[b];
  for (int t = 0; t < 2; ++t) {
    const KeyType& type = a.types[t];
    const std::int64_t first_key = type.key_offsets[b], keys = type.key_offsets[b + 1] - first_key;
    const std::int64_t width = 2 * type.radius + 1;
    std::int64_t before = 0;  // pairs of one head in earlier examples
    for (std::size_t e = 0; e < b; ++e) {
      before += (a.query_offsets[e + 1] - a.query_offsets[e]) * (type.key_offsets[e + 1] - type.key_offsets[e]);
    }
    pairs.reserve(pairs.size() + static_cast<std::size_t>(type.window ? std::min(keys, width) : keys));
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t column = type.window ? j - query.in_example + type.radius : j;
      if (type.window && (column < 0 || column >= width)) continue;
      const std::int64_t label_at =
          type.window ? query.row * width + column : before + query.in_example * keys + column;
      const std::int64_t element = type.window ? (head * a.query_offsets.back() + query.row) * width + column
                                               : before * a.heads + (head * queries + query.in_example) * keys + column;
      const int listed = type.labels.empty() ? 0 : type.labels[static_cast<std::size_t>(label_at)];
      const bool visible = listed != 255;
      if (!visible && !(type.carries && masked == Masked::carried)) continue;
      pairs.push_back({t, first_key + j, element, visible ? label_of(a, type, query, j, listed) : -1, visible, j});
    }
  }
  return pairs;
}

double at(const Values& values, std::int64_t index) {
  return values.empty() ? 0.0 : values[static_cast<std::size_t>(index)];
}

double& slot(Values& values, std::int64_t index) {
  return values[static_cast<std::size_t>(index)];
}

std::int64_t vector_at(const Attention& a, std::int64_t row, std::int64_t head) {
  return (row * a.heads + head) * a.head_size;
}

// The row of a table with one row per label and head.
std::int64_t row_at(const Attention& a, int label, std::int64_t head) {
  return a.shared_heads ? label : label * a.heads + head;
}

double scale_of(const Attention& a) {
  return a.scale > 0.0 ? a.scale : 1.0 / std::sqrt(static_cast<double>(a.head_size));
}

// A pair's entries in the tables, for one head.
struct PairTables {
  std::int64_t row = -1, vectors = 0;  // row, -1: none; start of its vectors
  double factor = 1.0;

  PairTables(const Attention& a, const Pair& pair, std::int64_t head) {
    if (pair.label < 0) return;
    row = row_at(a, pair.label, head);
    vectors = row * a.head_size;
    if (!a.factor.empty()) factor = at(a.factor, row);
  }
  double of(const Values& table, std::int64_t d) const { return row < 0 ? 0.0 : at(table, vectors + d); }
  double product(const Attention& a, std::int64_t d) const {
    return factor * (row < 0 || a.product.empty() ? 1.0 : at(a.product, vectors + d));
  }
};

double score(const Attention& a, const Query& query, std::int64_t head, const Pair& pair) {
  const PairTables tables(a, pair, head);
  const double* const q = a.q.data() + vector_at(a, query.row, head);
  const double* const k = a.types[pair.type].k.data() + vector_at(a, pair.key, head);
  double sum = tables.row < 0 ? 0.0 : at(a.rel_bias, tables.row);
  if (tables.row < 0) {  // the same sum, of terms that are not 0
    for (std::int64_t d = 0; d < a.head_size; ++d) sum += q[d] * k[d];
    return sum * scale_of(a);
  }
  for (std::int64_t d = 0; d < a.head_size; ++d) {
    sum += q[d] * k[d] * tables.product(a, d) + q[d] * tables.of(a.rel, d) + k[d] * tables.of(a.rel_k, d);
  }
  return sum * scale_of(a);
}

// C, probabilities before dropout and log-sum-exp of one query.
struct Row {
  std::vector<double> running, p;
  double lse = -std::numeric_limits<double>::infinity();
};

Row softmax_row(const Attention& a, const Query& query, std::int64_t head, const std::vector<Pair>& pairs) {
  Row row;
  std::vector<double> logits;
  for (std::vector<double>* of_pairs : {&row.running, &row.p, &logits}) of_pairs->reserve(pairs.size());
  double max = -std::numeric_limits<double>::infinity();
  for (const Pair& pair : pairs) {
    const KeyType& type = a.types[pair.type];
    const double own = score(a, query, head, pair);
    const double running = type.carries ? own + at(type.previous, pair.element) : own;
    row.running.push_back(running);
    logits.push_back(type.carries ? running * type.logit_scale : running);
    if (pair.visible) max = std::max(max, logits.back());
  }
  double sum = 0.0;
  for (std::size_t n = 0; n < pairs.size(); ++n) {
    row.p.push_back(pairs[n].visible ? std::exp(logits[n] - max) : 0.0);
    sum += row.p.back();
  }
  if (sum > 0.0) {
    row.lse = max + std::log(sum);
    for (double& p : row.p) p /= sum;
  }
  return row;
}

double dropout_factor(const Attention& a, const Query& query, std::int64_t head, const Pair& pair) {
  return a.dropout ? a.dropout(query.example, head, query.in_example, pair.type, pair.key_in_example) : 1.0;
}

std::size_t external_size(const Attention& a, int t) {
  const KeyType& type = a.types[t];
  if (type.window) return static_cast<std::size_t>(a.heads * a.query_offsets.back() * (2 * type.radius + 1));
  std::int64_t pairs = 0;
  for (std::size_t b = 0; b + 1 < a.query_offsets.size(); ++b) {
    pairs += (a.query_offsets[b + 1] - a.query_offsets[b]) * (type.key_offsets[b + 1] - type.key_offsets[b]);
  }
  return static_cast<std::size_t>(a.heads * pairs);
}

// A gradient and its mass at once.
void add(Values& gradient, Values& mass, std::int64_t index, double value, double magnitude) {
  if (gradient.empty()) return;
  slot(gradient, index) += value;
  slot(mass, index) += magnitude;
}

// Propagates the gradient of one pair's score, before its scale, to all inputs of the score.
void score_gradients(const Attention& a, const Query& query, std::int64_t head, const Pair& pair, double ds,
                     double mass, Gradients& g) {
  const PairTables tables(a, pair, head);
  const std::int64_t q_at = vector_at(a, query.row, head), k_at = vector_at(a, pair.key, head);
  const bool labelled = tables.row >= 0;
  double dot = 0.0, dot_mass = 0.0;
  for (std::int64_t d = 0; d < a.head_size; ++d) {
    const double q = at(a.q, q_at + d), k = at(a.types[pair.type].k, k_at + d), w = tables.product(a, d);
    const double by_q = w * k + tables.of(a.rel, d), by_k = w * q + tables.of(a.rel_k, d);
    add(g.dq, g.dq_mass, q_at + d, ds * by_q, mass * std::fabs(by_q));
    add(g.dk[pair.type], g.dk_mass[pair.type], k_at + d, ds * by_k, mass * std::fabs(by_k));
    dot += q * k;
    dot_mass += std::fabs(q * k);
    if (!labelled) continue;
    add(g.drel, g.drel_mass, tables.vectors + d, ds * q, mass * std::fabs(q));
    add(g.drel_k, g.drel_k_mass, tables.vectors + d, ds * k, mass * std::fabs(k));
    add(g.dproduct, g.dproduct_mass, tables.vectors + d, ds * q * k, mass * std::fabs(q * k));
  }
  if (!labelled) return;
  add(g.drel_bias, g.drel_bias_mass, tables.row, ds, mass);
  add(g.dfactor, g.dfactor_mass, tables.row, ds * dot, mass * dot_mass);
}

// Zero gradients with the sizes of the inputs.
Gradients zeros(const Attention& a) {
  Gradients g;
  g.dq.assign(a.q.size(), 0.0);
  g.drel.assign(a.rel.size(), 0.0);
  g.drel_bias.assign(a.rel_bias.size(), 0.0);
  g.drel_k.assign(a.rel_k.size(), 0.0);
  g.dfactor.assign(a.factor.size(), 0.0);
  g.dproduct.assign(a.product.size(), 0.0);
  g.drel_v.assign(a.rel_v.size(), 0.0);
  g.dq_mass = g.dq;
  g.drel_mass = g.drel;
  g.drel_bias_mass = g.drel_bias;
  g.drel_k_mass = g.drel_k;
  g.dfactor_mass = g.dfactor;
  g.dproduct_mass = g.dproduct;
  g.drel_v_mass = g.drel_v;
  for (int t = 0; t < 2; ++t) {
    g.dk[t].assign(a.types[t].k.size(), 0.0);
    g.dk_mass[t] = g.dv[t] = g.dv_mass[t] = g.dk[t];
    g.drunning[t].assign(external_size(a, t), 0.0);
    g.drunning_mass[t] = g.drunning[t];
  }
  return g;
}

}  // namespace

Result forward(const Attention& a) {
  Result result;
  result.out.assign(a.q.size(), 0.0);
  result.lse.assign(static_cast<std::size_t>(a.heads * a.query_offsets.back()), 0.0);
  for (int t = 0; t < 2; ++t) result.running[t].assign(external_size(a, t), 0.0);
  for (const Query& query : queries_of(a)) {
    for (std::int64_t head = 0; head < a.heads; ++head) {
      const std::vector<Pair> pairs = pairs_of(a, query, head, Masked::carried);
      const Row row = softmax_row(a, query, head, pairs);
      slot(result.lse, head * a.query_offsets.back() + query.row) = row.lse;
      for (std::size_t n = 0; n < pairs.size(); ++n) {
        slot(result.running[pairs[n].type], pairs[n].element) = row.running[n];
        if (!pairs[n].visible) continue;
        const double weight = row.p[n] * dropout_factor(a, query, head, pairs[n]);
        const PairTables tables(a, pairs[n], head);
        for (std::int64_t d = 0; d < a.head_size; ++d) {
          slot(result.out, vector_at(a, query.row, head) + d) +=
              weight * (at(a.types[pairs[n].type].v, vector_at(a, pairs[n].key, head) + d) + tables.of(a.rel_v, d));
        }
      }
    }
  }
  return result;
}

Gradients backward(const Attention& a, const Values& dout, const Values (&drunning_in)[2],
                   const Values (&drunning_mass_in)[2]) {
  Gradients g = zeros(a);
  for (const Query& query : queries_of(a)) {
    for (std::int64_t head = 0; head < a.heads; ++head) {
      const std::vector<Pair> pairs = pairs_of(a, query, head, Masked::none);
      const Row row = softmax_row(a, query, head, pairs);
      const std::int64_t q = vector_at(a, query.row, head);
      std::vector<double> dp(pairs.size(), 0.0), dp_mass(pairs.size(), 0.0);
      double mean = 0.0, mean_mass = 0.0;  // sum_j p_j dp_j
      for (std::size_t n = 0; n < pairs.size(); ++n) {
        const double kept = dropout_factor(a, query, head, pairs[n]);
        const std::int64_t value = vector_at(a, pairs[n].key, head);
        const PairTables tables(a, pairs[n], head);
        for (std::int64_t d = 0; d < a.head_size; ++d) {
          const double upstream = at(dout, q + d);
          const double v = at(a.types[pairs[n].type].v, value + d) + tables.of(a.rel_v, d);
          dp[n] += kept * upstream * v;
          dp_mass[n] += kept * std::fabs(upstream * v);
          const double dv = row.p[n] * kept * upstream;
          add(g.dv[pairs[n].type], g.dv_mass[pairs[n].type], value + d, dv, std::fabs(dv));
          if (tables.row >= 0) add(g.drel_v, g.drel_v_mass, tables.vectors + d, dv, std::fabs(dv));
        }
        mean += row.p[n] * dp[n];
        mean_mass += row.p[n] * dp_mass[n];
      }
      for (std::size_t n = 0; n < pairs.size(); ++n) {
        const Pair& pair = pairs[n];
        const KeyType& type = a.types[pair.type];
        const double c = type.carries ? type.logit_scale : 1.0;
        double ds = c * row.p[n] * (dp[n] - mean), mass = c * row.p[n] * (dp_mass[n] + mean_mass);
        if (type.carries) {
          ds += at(drunning_in[pair.type], pair.element);
          mass += at(drunning_mass_in[pair.type], pair.element);
          slot(g.drunning[pair.type], pair.element) = ds;
          slot(g.drunning_mass[pair.type], pair.element) = mass;
        }
        score_gradients(a, query, head, pair, ds * scale_of(a), mass * scale_of(a), g);
      }
    }
  }
  return g;
}

}  // namespace etc::reference
