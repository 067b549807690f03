#include "etc_core/nn/positions.h"

#include <numeric>

#include "etc_core/autograd/functions.h"
#include "etc_core/autograd/position_bias.h"
#include "etc_core/base/error.h"
#include "etc_core/base/large_blocks.h"
#include "etc_core/base/log.h"
#include "etc_core/nn/blocks/forward_context.h"
#include "etc_core/nn/position_tables.h"
#include "etc_core/nn/projected_positions.h"
#include "sparse/labels/distance_maps.h"
#include "sparse/tile_run.h"

namespace etc {

namespace {

using Method = PositionConfig::Method;
using Sharing = PositionConfig::Sharing;
using TableInit = PositionConfig::TableInit;

// Largest distances of relative_clip none.
constexpr std::int64_t kUsualClip = 64, kWholeText = 511;

bool is_nezha(Method method) {
  return method == Method::nezha_index || method == Method::nezha_signed;
}

// Methods that multiply q·k.
bool multiplies(Method method) {
  return method == Method::huang1 || method == Method::huang2 || method == Method::huang3;
}

// Whether a row has a vector per head instead of a number.
bool has_vectors(Method method) {
  return method != Method::t5 && method != Method::huang1 && method != Method::huang2;
}

Initializer initializer(const PositionConfig& config, const Initializer& normal) {
  switch (config.relative_init) {
    case TableInit::zeros:
      return kZeros;
    case TableInit::ones:
      return kOnes;
    case TableInit::normal:
      return normal;
    case TableInit::by_method:
      break;
  }
  // Factors near 0 would make all scores, and the gradients of q and k, nearly 0.
  return multiplies(config.relative_positions) ? kOnes : normal;
}

std::vector<std::int64_t> numbers_from(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(last - first + 1));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

sparse::T5Buckets t5_settings(const PositionConfig& config) {
  return {config.relative_buckets, config.relative_max_distance, !config.causal};
}

}  // namespace

std::int64_t PositionConfig::clip() const {
  const bool unclipped = multiplies(relative_positions) || relative_positions == Method::huang4 ||
                         relative_positions == Method::transformer_xl;
  return relative_clip.value_or(unclipped ? kWholeText : kUsualClip);
}

std::vector<std::string> PositionConfig::unread_position_keys() const {
  const PositionConfig usual;
  const bool t5 = relative_positions == Method::t5, xl = relative_positions == Method::transformer_xl;
  const bool trained_tables = has_relative_positions() && !t5 && !xl && !is_nezha(relative_positions);
  std::vector<std::string> keys;
  const auto add = [&](const char* key, bool read, bool given) {
    if (given && !read) keys.emplace_back(key);
  };
  // Not a given value, because files of older programs have it beside every method.
  add("relative_clip", has_relative_positions() && !t5, relative_clip.value_or(kUsualClip) != kUsualClip);
  add("relative_sharing", trained_tables || xl, relative_sharing != usual.relative_sharing);
  add("relative_init", trained_tables || t5, relative_init != usual.relative_init);
  add("relative_buckets", t5, relative_buckets != usual.relative_buckets);
  add("relative_max_distance", t5, relative_max_distance != usual.relative_max_distance);
  add("xl_content_bias", xl, xl_content_bias != usual.xl_content_bias);
  add("xl_position_bias", xl, xl_position_bias != usual.xl_position_bias);
  return keys;
}

void PositionConfig::validate_positions(std::int64_t position_rows) const {
  if (!has_relative_positions()) return;
  if (position_rows > 0) {
    fail_usage(
        "config",
        "max_absolute_position_embeddings: expected 0 beside relative_positions, which replace them (left in, they "
        "make every method look alike), got {}",
        position_rows);
  }
  if (2 * clip() + 1 > sparse::kMostLabels) {
    fail_usage("config", "relative_clip: expected at most {} distances, got {}", sparse::kMostLabels / 2 - 1, clip());
  }
  if (multiplies(relative_positions) && relative_init == TableInit::zeros) {
    fail_usage("config", "relative_init: expected another than zeros, which make all scores 0");
  }
  if (relative_positions != Method::t5) return;
  // T5's bucket function names its own arguments in errors; these checks name the configuration's keys.
  const std::int64_t exact = relative_buckets / (causal ? 2 : 4);
  if (relative_buckets < 4 || (!causal && relative_buckets % 2 != 0)) {
    fail_usage("config", "relative_buckets: expected {} from 4 on, got {}", causal ? "a number" : "an even number",
               relative_buckets);
  }
  if (relative_buckets > sparse::kMostLabels) {
    fail_usage("config", "relative_buckets: expected at most {}, got {}", sparse::kMostLabels, relative_buckets);
  }
  if (relative_max_distance <= exact) {
    fail_usage("config",
               "relative_max_distance: expected more than the {} exact buckets of relative_buckets={}, got {}", exact,
               relative_buckets, relative_max_distance);
  }
}

Positions::Positions(ParameterSet& parameters, const std::string& names, const PositionConfig& config,
                     const PositionSizes& sizes, std::vector<Parameter*> query_biases)
    : config_(config), sizes_(sizes) {
  const Method method = config.relative_positions;
  if (method == Method::none) return;
  const std::int64_t k = config.clip();
  if (is_nezha(method)) {
    const NezhaRows over = method == Method::nezha_index ? NezhaRows::index : NezhaRows::signed_distance;
    if (sizes.head_size % 2 != 0) log::warn("nezha: a head size of D={} leaves a sine without cosine", sizes.head_size);
    fixed_ =
        FixedTable(Tensor::from(nezha_table(over, k, sizes.head_size), {rows(), sizes.head_size}, Purpose::weights));
  } else if (method == Method::transformer_xl) {
    if (sizes.hidden % 2 != 0) log::warn("transformer_xl: a width of H={} leaves a last column of zeros", sizes.hidden);
    const std::vector<float> sines =
        sinusoids(SinusoidLayout::halves_xl, numbers_from(first_xl_distance(), k), sizes.hidden);
    fixed_ = FixedTable(Tensor::from(sines, {rows(), sizes.hidden}, Purpose::weights));
  }
  Parameter* shared_v = nullptr;
  if (config.shares_xl_biases() && config.xl_position_bias) {
    shared_v = &parameters.add(names + "relative_position_bias", {sizes.heads, sizes.head_size}, kZeros);
  }
  // T5 has one table for all layers.
  const bool one =
      method == Method::t5 || (config.relative_sharing == Sharing::model && method != Method::transformer_xl);
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const std::string layer = names + "layer_" + std::to_string(i) + "/attention/self/";
    layers_.push_back(one && i > 0 ? layers_.front() : add_layer(parameters, one ? names : layer));
    if (shared_v != nullptr) layers_.back().position_bias = shared_v;
    layers_.back().query_bias = query_biases[static_cast<std::size_t>(i)];
  }
}

Positions::Layer Positions::add_layer(ParameterSet& parameters, const std::string& names) const {
  const Method method = config_.relative_positions;
  Layer layer;
  if (is_nezha(method)) return layer;
  const std::int64_t heads = sizes_.heads, size = sizes_.head_size;
  if (method == Method::transformer_xl) {
    layer.projection = &parameters.add(names + "relative_projection", {sizes_.hidden, heads * size}, sizes_.kernel);
    if (config_.xl_position_bias && !config_.shares_xl_biases()) {
      layer.position_bias = &parameters.add(names + "relative_position_bias", {heads, size}, kZeros);
    }
    return layer;
  }
  const bool shared = config_.relative_sharing != Sharing::layer_head && method != Method::t5;
  std::vector<std::int64_t> shape{rows()};
  if (!shared) shape.push_back(heads);
  if (has_vectors(method)) shape.push_back(size);
  const Initializer of_table = initializer(config_, sizes_.table);
  // T5's table has no "bias" in its name, so that weight decay applies to it as to other tables.
  layer.table = &parameters.add(names + "relative_table", shape, of_table);
  if (method == Method::shaw_values) {
    layer.value_table = &parameters.add(names + "relative_value_table", shape, of_table);
  }
  if (method == Method::etc) {
    shape.pop_back();
    layer.bias_table = &parameters.add(names + "relative_bias_table", shape, kZeros);
  }
  return layer;
}

std::int64_t Positions::rows() const {
  if (config_.relative_positions == Method::t5) return config_.relative_buckets;
  const std::int64_t k = config_.clip();
  const bool one_sided = config_.relative_positions == Method::huang1 ||
                         (config_.relative_positions == Method::transformer_xl && config_.causal);
  return one_sided ? k + 1 : 2 * k + 1;
}

std::int64_t Positions::first_xl_distance() const {
  return config_.causal ? 0 : -config_.clip();
}

sparse::DistanceMap Positions::map() const {
  const std::int64_t k = config_.clip();
  switch (config_.relative_positions) {
    case Method::t5:
      return sparse::t5_distances(t5_settings(config_));
    case Method::transformer_xl:
      return sparse::reversed_distances(first_xl_distance(), k);
    case Method::huang1:
      return sparse::undirected_distances(k);
    case Method::etc:
      return sparse::etc_distances(k);
    default:
      return sparse::clipped_distances(k);
  }
}

void Positions::prepare(AttentionBatch& batch, std::size_t n) const {
  if (layers_.empty()) return;
  OperatorBatch& own = batch.operators[n];
  if (own.relative) return;  // the input provides labels
  sparse::label_by_distance(own.tiles.types[0], map());
  own.relative = true;
  // T5 includes the scale in the initialisation of its queries.
  if (config_.relative_positions == Method::t5) batch.scale = 1;
}

RelativeParameters Positions::project(Tape& tape, const Layer& layer) const {
  const Var rel =
      linear(tape, Var(fixed_.on(layer.projection->value.device())), {{{layer.projection, nullptr}}});  // [R, A]
  RelativeParameters tables;
  tables.vectors = rel;
  tables.biases = position_bias(tape, rel, sizes_.heads,
                                {config_.xl_content_bias ? layer.query_bias : nullptr, layer.position_bias});  // [R, N]
  return tables;
}

const RelativeParameters& Positions::projected(ProjectedPositions& kept, std::int64_t layer,
                                               FiniteChecks checks) const {
  const Layer& own = layers_[static_cast<std::size_t>(layer)];
  const std::uint64_t versions = own.projection->version + own.query_bias->version +
                                 (own.position_bias != nullptr ? own.position_bias->version : 0);
  return kept.of(layer, versions, [&] {
    // A separate tape, because the pool of the pass's tape would keep these sizes, which are needed once, until the end
    // of the pass.
    Tape tape(Recording::off, checks);
    RelativeParameters tables = project(tape, own);
    for (RelativePart* const part : {&tables.vectors, &tables.biases}) {
      *part = Var(part->value().clone(Purpose::weights));
    }
    return tables;
  });
}

void Positions::release_kernels(ProjectedPositions& kept) const {
  if (config_.relative_positions != Method::transformer_xl) return;
  for (std::int64_t layer = 0; layer < sizes_.layers; ++layer) {
    projected(kept, layer, FiniteChecks::off);
    layers_[static_cast<std::size_t>(layer)].projection->value = Tensor();
  }
  large_blocks::release_kept();  // memory of W_R
}

RelativeParameters Positions::tables(Tape& tape, std::int64_t layer, ProjectedPositions* kept) const {
  RelativeParameters tables;
  if (layers_.empty()) return tables;
  const Layer& own = layers_[static_cast<std::size_t>(layer)];
  const Method method = config_.relative_positions;
  tables.shared_heads = is_nezha(method) || (config_.relative_sharing != Sharing::layer_head && own.table != nullptr &&
                                             method != Method::t5);
  switch (method) {
    case Method::none:
      break;
    case Method::shaw:
    case Method::shaw_values:
      tables.vectors = own.table;
      tables.value_vectors = own.value_table;
      break;
    case Method::t5:
      tables.biases = own.table;
      break;
    case Method::transformer_xl:
      return kept != nullptr ? projected(*kept, layer, tape.checks()) : project(tape, own);
    case Method::etc:
      tables.vectors = own.table;
      tables.biases = own.bias_table;
      break;
    case Method::huang1:
    case Method::huang2:
      tables.factors = own.table;
      break;
    case Method::huang3:
      tables.products = own.table;
      break;
    case Method::huang4:
      tables.vectors = tables.key_vectors = own.table;
      break;
    case Method::nezha_index:
    case Method::nezha_signed:
      tables.vectors = tables.value_vectors = Var(fixed_.on(own.query_bias->value.device()));
      break;
  }
  return tables;
}

}  // namespace etc
