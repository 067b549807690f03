// The formula of the sparse attention operator, in double precision, pair by pair: written from the contract of
// sparse/attention.h, sharing no code with the library. Slow on purpose.
//
// Every value comes with its *mass*: the same sum with every term replaced by its magnitude. Rounding errors are
// bounded by mass times epsilon, so tests compute their tolerances from it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace etc::reference {

using Values = std::vector<double>;
using Offsets = std::vector<std::int64_t>;

// Keys of one type and the data of each pair. Pairs are numbered in the external form of the scores.
struct KeyType {
  Offsets key_offsets;
  Values k, v;                       // [keys, N, D]
  std::vector<std::uint8_t> labels;  // external form of one head; empty: all visible, no relative term
  bool window = false;               // l2l: columns are distances
  std::int64_t radius = 0;
  bool carries = false;
  double logit_scale = 1.0;  // c, if the type carries scores
  Values previous;           // C of the layer before, external form [N, …]; empty: zeros
  // Labels by distance (`labels` is then only a mask): rows[clip(d) - first], d = key - query + shift of the example.
  std::vector<std::int64_t> distance_rows;  // empty: none
  std::int64_t first_distance = 0;
  std::vector<std::int64_t> shifts;  // empty: 0
};

struct Attention {
  std::int64_t heads = 1, head_size = 1, relative_labels = 0;
  Offsets query_offsets;
  Values q;                              // [queries, N, D]
  bool shared_heads = false;             // tables are [R, D] and [R]
  double scale = 0.0;                    // of the scores; 0: 1/sqrt(D)
  Values rel, rel_bias;                  // [R, N, D], [R, N]; empty: none
  Values rel_k, factor, product, rel_v;  // [R, N, D], factor [R, N]; empty: none
  KeyType types[2];
  // Factor on a probability: 0 or 1/(1-rate); keys of both types are numbered consecutively. Null: 1.
  std::function<double(std::int64_t example, std::int64_t head, std::int64_t query, int type, std::int64_t key)>
      dropout;
};

struct Result {
  Values out, lse;    // [queries, N, D], [N, queries]
  Values running[2];  // C, external form; 0 for pairs that do not exist, and for masked pairs of types that carry none
};

struct Gradients {
  Values dq, dk[2], dv[2], drel, drel_bias, drel_k, dfactor, dproduct, drel_v;
  Values dq_mass, dk_mass[2], dv_mass[2], drel_mass, drel_bias_mass, drel_k_mass, dfactor_mass, dproduct_mass,
      drel_v_mass;
  Values drunning[2], drunning_mass[2];  // dC, which is also the gradient of the layer before's C
};

Result forward(const Attention& attention);

// drunning_in: gradient of this layer's C from the layers above, with its mass; empty: none.
Gradients backward(const Attention& attention, const Values& dout, const Values (&drunning_in)[2],
                   const Values (&drunning_mass_in)[2]);

}  // namespace etc::reference
