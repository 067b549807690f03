// How the attention of a dense encoder knows the distance of two tokens (relative-positions 3 to 7): the keys of its
// configuration, the parameters of every layer, and what the attention operator is given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/fixed_table.h"

namespace etc {

class ProjectedPositions;  // projected_positions.h

// What a method is given; every kind of encoder that offers them has these members.
struct PositionConfig {
  // r: the row of a pair's clipped distance (key - query); scale 1/sqrt(D) unless said.
  //   shaw            q·(k + rel[r])                               Shaw et al. 2018
  //   shaw_values     the same, and values v + rel_v[r]
  //   t5              q·k + bias[bucket(distance)], scale 1        Raffel et al. 2020
  //   transformer_xl  (q + u)·k + (q + v)·W_R R_(query - key)      Dai et al. 2019; R: sinusoids of the model's width
  //   huang1, 2       q·k factor[r], r = |distance|, distance      Huang et al. 2020
  //   huang3          sum_c q_c k_c w[r]_c
  //   huang4          q·k + q·w[r] + k·w[r]
  //   nezha_index, _signed   as shaw_values with fixed sinusoids (position_tables.h)
  //   etc             q·(k + rel[r]) + bias[r]                     Ainslie et al. 2020; r: the input's own label of the
  //                   pair where it has labels, else the id of the distance (sparse/labels/relative_ids.h)
  enum class Method {
    none,
    shaw,
    shaw_values,
    t5,
    transformer_xl,
    huang1,
    huang2,
    huang3,
    huang4,
    nezha_index,
    nezha_signed,
    etc
  };
  // Of the tables of Shaw, Huang and ETC: one for each layer and head; for each layer, of all heads; one for all. Of
  // transformer_xl model shares u and v between all layers, as its paper does; else each layer has its own, as in XLNet.
  enum class Sharing { layer_head, layer, model };
  enum class TableInit { by_method, zeros, ones, normal };  // by_method: ones of factors and products, else normal

  bool causal = false;  // nobody sees keys to the right: t5's buckets and transformer_xl's rows are all of the left
  Method relative_positions = Method::none;
  std::int64_t relative_clip = 64;  // k: farther tokens count as this far; n-1 for sequences of n: not clipped
  Sharing relative_sharing = Sharing::layer_head;
  TableInit relative_init = TableInit::by_method;
  std::int64_t relative_buckets = 32;        // T5's num_buckets
  std::int64_t relative_max_distance = 128;  // T5's max_distance
  bool xl_content_bias = true;               // u, which is the query projection's bias; false: u = 0
  bool xl_position_bias = true;              // v; false: v = 0

  // Whether u and v are one for all layers.
  bool shares_xl_biases() const {
    return relative_positions == Method::transformer_xl && relative_sharing == Sharing::model;
  }
  bool has_relative_positions() const { return relative_positions != Method::none; }
  // Keys given another value than usual that the method does not read.
  std::vector<std::string> unread_position_keys() const;
  // Throws UsageError "config: …" naming the key. position_rows: max_absolute_position_embeddings.
  void validate_positions(std::int64_t position_rows) const;
};

// The sizes parameters are made for.
struct PositionSizes {
  std::int64_t layers = 0, heads = 0, head_size = 0, hidden = 0;
  Initializer table, kernel;  // of fresh ones
};

// The tables of all layers of one encoder. Without a method there are none, and every function does nothing.
class Positions {
 public:
  Positions() = default;
  // Declares the parameters, "<names>layer_0/attention/self/relative_…" or, of one table for all, "<names>relative_…".
  // The configuration is valid. query_biases [layers]: the biases of the query projections, [A] each.
  Positions(ParameterSet& parameters, const std::string& names, const PositionConfig& config,
            const PositionSizes& sizes, std::vector<Parameter*> query_biases);

  // Rows of the tables that a label selects; 0: none is asked for, so that labels only mask.
  std::int64_t label_rows() const { return config_.relative_positions == PositionConfig::Method::etc ? rows() : 0; }

  // Gives the pairs of the batch's operator n their labels, unless they have the input's own, and the scores their scale.
  void prepare(AttentionBatch& batch, std::size_t n) const;

  // A layer's tables. Transformer-XL's are computed, on the tape, one product for each call; or kept, by passes of
  // inference: in fp32 and with the same bits. kept is null for a pass that records, also for what of it is on tapes that
  // do not.
  RelativeParameters tables(Tape& tape, std::int64_t layer, ProjectedPositions* kept) const;

  // Makes all that passes of inference keep and takes the values of W_R away, layer by layer.
  void release_kernels(ProjectedPositions& kept) const;

 private:
  struct Layer {
    Parameter* table = nullptr;          // [R, N, D] or [R, N]; shared by heads [R, D] or [R]
    Parameter* value_table = nullptr;    // the same of the values
    Parameter* bias_table = nullptr;     // [R, N] or [R], beside the table of etc
    Parameter* projection = nullptr;     // W_R [H, A]
    Parameter* position_bias = nullptr;  // v [N, D]
    Parameter* query_bias = nullptr;     // u [A]
  };

  Layer add_layer(ParameterSet& parameters, const std::string& names) const;
  // Transformer-XL's tables of a layer: computed, and those that are kept.
  RelativeParameters project(Tape& tape, const Layer& layer) const;
  const RelativeParameters& projected(ProjectedPositions& kept, std::int64_t layer, FiniteChecks checks) const;
  std::int64_t rows() const;
  std::int64_t first_xl_distance() const;  // query - key of the first row of R
  sparse::DistanceMap map() const;

  PositionConfig config_;
  PositionSizes sizes_;
  std::vector<Layer> layers_;
  FixedTable fixed_;  // sinusoids: NEZHA's [R, D], Transformer-XL's R [R, H]
};

}  // namespace etc
