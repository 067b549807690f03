// The formula of linear attention (sparse/performer.h) in double precision, query by query: written from the
// specification, sharing no code with the library. Slow on purpose.
#pragma once

#include <cstdint>
#include <vector>

namespace etc::reference {

struct Performer {
  std::int64_t heads = 1, head_size = 1, features = 1;
  std::vector<std::int64_t> query_offsets, key_offsets;
  std::vector<double> q, k, v;     // [rows, N, D]
  std::vector<double> projection;  // [m, D]
  bool causal = false, stabilised = true;
  double score_scale = 0;  // of q·k; 0: 1/sqrt(D)
};

// Features of all queries [queries, N, m], each query with its own maximum.
std::vector<double> query_features(const Performer& p);

// Features of all keys [keys, N, m], with one maximum per example and head.
std::vector<double> key_features(const Performer& p);

// [queries, N, D]; 0 without keys.
std::vector<double> performer(const Performer& p);

}  // namespace etc::reference
