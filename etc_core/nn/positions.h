// Relative positions of a dense encoder (relative-positions 3 to 7): the keys of its configuration, the parameters of
// every layer, and the tables and labels passed to the attention operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/autograd/attention.h"
#include "etc_core/nn/fixed_table.h"
#include "etc_core/nn/parameters.h"

namespace etc {

class ProjectedPositions;  // projected_positions.h

// The options of relative positions; the configuration of every kind of encoder that offers them has these members.
struct PositionConfig {
  // r: the row of a pair's clipped distance (key - query); the scale is 1/sqrt(D) unless stated otherwise.
  //   shaw            q·(k + rel[r])                               Shaw et al. 2018
  //   shaw_values     the same, and values v + rel_v[r]
  //   t5              q·k + bias[bucket(distance)], scale 1        Raffel et al. 2020
  //   transformer_xl  (q + u)·k + (q + v)·W_R R_(query - key)      Dai et al. 2019; R: sinusoids of the model's width
  //   huang1, 2       q·k factor[r], r = |distance|, distance      Huang et al. 2020
  //   huang3          sum_c q_c k_c w[r]_c
  //   huang4          q·k + q·w[r] + k·w[r]
  //   nezha_index, _signed   as shaw_values with fixed sinusoids (position_tables.h)
  //   etc             q·(k + rel[r]) + bias[r]                     Ainslie et al. 2020; r: the label of the pair if the
  //                   input has labels, else the id of the distance (sparse/labels/relative_ids.h)
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
  // For the tables of Shaw, Huang and ETC: one per layer and head; one per layer for all heads; or one for all layers.
  // For transformer_xl, `model` shares u and v between all layers, as in its paper; otherwise each layer has its own,
  // as in XLNet.
  enum class Sharing { layer_head, layer, model };
  enum class TableInit { by_method, zeros, ones, normal };  // by_method: ones for factors and products, else normal

  bool causal = false;  // tokens see no keys to the right; all t5 buckets and transformer_xl rows are for the left
  Method relative_positions = Method::none;
  // k: larger distances are clipped to this; n-1 for sequences of n disables clipping. None: see clip().
  std::optional<std::int64_t> relative_clip;
  Sharing relative_sharing = Sharing::layer_head;
  TableInit relative_init = TableInit::by_method;
  std::int64_t relative_buckets = 32;        // T5's num_buckets
  std::int64_t relative_max_distance = 128;  // T5's max_distance
  bool xl_content_bias = true;               // u, the bias of the query projection; false: u = 0
  bool xl_position_bias = true;              // v; false: v = 0

  // relative_clip, or where it is none, by method: 511 for huang1 to huang4 and transformer_xl, which their papers do
  // not clip (no two of 512 tokens are farther apart); 64 for the others, as NEZHA.
  std::int64_t clip() const;
  // Whether all layers share u and v.
  bool shares_xl_biases() const {
    return relative_positions == Method::transformer_xl && relative_sharing == Sharing::model;
  }
  bool has_relative_positions() const { return relative_positions != Method::none; }
  // Keys with a non-default value that the method does not read.
  std::vector<std::string> unread_position_keys() const;
  // Throws UsageError "config: …" naming the key. position_rows: max_absolute_position_embeddings.
  void validate_positions(std::int64_t position_rows) const;
};

// The sizes of the parameters.
struct PositionSizes {
  std::int64_t layers = 0, heads = 0, head_size = 0, hidden = 0;
  Initializer table, kernel;  // initial values
};

// The tables of all layers of one encoder. Without a method there are no tables, and every function does nothing.
class Positions {
 public:
  Positions() = default;
  // Declares the parameters, "<names>layer_0/attention/self/relative_…" or, if all layers share one table,
  // "<names>relative_…". The configuration must be valid. query_biases [layers]: the biases of the query projections,
  // [A] each.
  Positions(ParameterSet& parameters, const std::string& names, const PositionConfig& config,
            const PositionSizes& sizes, std::vector<Parameter*> query_biases);

  // Number of table rows that labels can select; 0 if labels only mask.
  std::int64_t label_rows() const { return config_.relative_positions == PositionConfig::Method::etc ? rows() : 0; }

  // Sets the labels of the pairs of the batch's operator n, unless the input provides labels, and the scale of the
  // scores.
  void prepare(AttentionBatch& batch, std::size_t n) const;

  // A layer's tables. Transformer-XL's are computed on the tape, one product per call, or taken from `kept` in
  // inference (in fp32, with the same bits). `kept` is null for a pass that records, even for those of its parts that
  // run on tapes that do not record.
  RelativeParameters tables(Tape& tape, std::int64_t layer, ProjectedPositions* kept) const;

  // Computes all tables that inference keeps and frees the values of W_R, layer by layer.
  void release_kernels(ProjectedPositions& kept) const;

 private:
  struct Layer {
    Parameter* table = nullptr;          // [R, N, D] or [R, N]; shared by heads [R, D] or [R]
    Parameter* value_table = nullptr;    // the same for the values
    Parameter* bias_table = nullptr;     // [R, N] or [R], in addition to the table of etc
    Parameter* projection = nullptr;     // W_R [H, A]
    Parameter* position_bias = nullptr;  // v [N, D]
    Parameter* query_bias = nullptr;     // u [A]
  };

  Layer add_layer(ParameterSet& parameters, const std::string& names) const;
  // Transformer-XL's tables of a layer: computed on the tape; from `kept`.
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
