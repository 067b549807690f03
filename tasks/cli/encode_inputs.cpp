#include "tasks/cli/encode_inputs.h"

#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/seq2seq/config.h"
#include "sparse/labels/relative_ids.h"

namespace etc::cli {

namespace {

// One array of the file: its shape, and the member that an example's part of it is assigned to.
struct Expected {
  const char* name;
  const char* letters;  // "BLW": one letter per dimension
  bool floating = false;
  bool required = false;
  std::vector<std::int32_t> EncoderInput::*ids = nullptr;
  Var EncoderInput::*adder = nullptr;
  const std::int32_t* sparse::MasksAndIds::*pairs = nullptr;
};

constexpr Expected ids(const char* name, const char* letters, std::vector<std::int32_t> EncoderInput::*member,
                       bool required = false) {
  return {.name = name, .letters = letters, .required = required, .ids = member};
}
constexpr Expected adder(const char* name, const char* letters, Var EncoderInput::*member) {
  return {.name = name, .letters = letters, .floating = true, .adder = member};
}
constexpr Expected pairs(const char* name, const char* letters, const std::int32_t* sparse::MasksAndIds::*member) {
  return {.name = name, .letters = letters, .pairs = member};
}

using sparse::MasksAndIds;

constexpr Expected kTokens = ids("token_ids", "BL", &EncoderInput::token_ids, true);
constexpr Expected kGlobals = ids("global_token_ids", "BG", &EncoderInput::global_token_ids, true);
constexpr Expected kArrays[] = {kTokens,
                                kGlobals,
                                ids("segment_ids", "BL", &EncoderInput::segment_ids),
                                ids("global_segment_ids", "BG", &EncoderInput::global_segment_ids),
                                ids("position_ids", "BL", &EncoderInput::position_ids),
                                ids("global_position_ids", "BG", &EncoderInput::global_position_ids),
                                adder("long_embedding_adder", "BLH", &EncoderInput::long_embedding_adder),
                                adder("global_embedding_adder", "BGH", &EncoderInput::global_embedding_adder),
                                pairs("l2l_att_mask", "BLW", &MasksAndIds::l2l_mask),
                                pairs("l2g_att_mask", "BLG", &MasksAndIds::l2g_mask),
                                pairs("g2g_att_mask", "BGG", &MasksAndIds::g2g_mask),
                                pairs("g2l_att_mask", "BGL", &MasksAndIds::g2l_mask),
                                pairs("l2l_relative_att_ids", "BLW", &MasksAndIds::l2l_ids),
                                pairs("l2g_relative_att_ids", "BLG", &MasksAndIds::l2g_ids),
                                pairs("g2g_relative_att_ids", "BGG", &MasksAndIds::g2g_ids),
                                pairs("g2l_relative_att_ids", "BGL", &MasksAndIds::g2l_ids)};

constexpr Expected kSelfMask = {.name = "self_att_mask", .letters = "BLL"};

// The arrays that the encoder's inputs may have.
std::vector<Expected> arrays_of(const EncoderConfig& config) {
  if (config.has_global_tokens()) return {std::begin(kArrays), std::end(kArrays)};
  std::vector<Expected> all = {kSelfMask};
  for (const Expected& array : kArrays) {
    if (array.pairs == nullptr && array.letters[1] == 'L') all.push_back(array);
  }
  return all;
}

// The setting that defines the attention pattern instead of a mask, or null: the encoder takes a mask.
const char* no_mask_with(const EncoderConfig& config) {
  using Attention = DenseConfig::Attention;
  if (dynamic_cast<const Seq2SeqConfig*>(&config) != nullptr) {
    return "an encoder-decoder, whose tokens see their whole sentence";
  }
  const auto* const dense = dynamic_cast<const DenseConfig*>(&config);
  if (dense == nullptr) return nullptr;
  if (dense->attention == Attention::bigbird) return "attention bigbird, whose blocks say who sees whom";
  if (dense->attention == Attention::performer) return "attention performer, which has no pairs";
  return dense->causal ? "causal, which says who sees whom" : nullptr;
}

// The position tables whose rows are selected by labels with ETC's ids of distances; null: labels only mask.
const PositionConfig* labelled_positions(const EncoderConfig& config) {
  const auto* const dense = dynamic_cast<const DenseConfig*>(&config);
  const bool labelled = dense != nullptr && dense->relative_positions == PositionConfig::Method::etc;
  return labelled ? dense : nullptr;
}

// Throws Error if the encoder cannot take a mask.
void check_mask(const std::string& where, const EncoderConfig& config) {
  if (const char* const instead = no_mask_with(config)) {
    fail(where, "expected none with {} (leave it out, and give sequences without padding)", instead);
  }
  constexpr std::int64_t kMostClip = (sparse::kMasked - 1) / 2;  // 2k+1 ids in a byte, in addition to the masked id
  const PositionConfig* const positions = labelled_positions(config);
  if (positions != nullptr && positions->clip() > kMostClip) {
    fail(where,
         "expected a model of relative_clip at most {} beside relative_positions etc, got {}: a mask's labels are a "
         "byte each (leave it out, and give sequences without padding)",
         kMostClip, positions->clip());
  }
}

std::vector<data::ArrayRequest> requests(const EncoderConfig& config) {
  std::vector<data::ArrayRequest> all;
  for (const Expected& array : arrays_of(config)) all.push_back({array.name, array.floating, array.required});
  return all;
}

}  // namespace

EncodeInputs::EncodeInputs(const std::filesystem::path& path, const EncoderConfig& config)
    : where_("encode: " + path.string() + ":/inputs"),
      config_(config),
      arrays_(data::read_arrays(path, "inputs", requests(config))) {
  if (const auto* const etc = dynamic_cast<const EtcConfig*>(&config)) {
    radius_ = etc->local_radius;
    relative_labels_ = etc->relative_labels();
  }
  for (const char* name : {kTokens.name, kGlobals.name}) {
    const data::NumericArray* found = find(name);
    if (found != nullptr && found->shape.size() != 2) {
      fail(where_ + "/" + name, "expected two dimensions, got {}", shape_text(found->shape));
    }
  }
  batch_ = arrays_.at(kTokens.name).shape[0];
  length_ = arrays_.at(kTokens.name).shape[1];
  if (const data::NumericArray* globals = find(kGlobals.name)) globals_ = globals->shape[1];
  for (const Expected& array : arrays_of(config)) {
    const data::NumericArray* found = find(array.name);
    if (found == nullptr) continue;
    std::vector<std::int64_t> sizes;
    std::string text;
    for (const char* letter = array.letters; *letter != '\0'; ++letter) {
      sizes.push_back(size_of(*letter));
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", *letter, sizes.back());
    }
    if (found->shape != sizes) {
      fail(where_ + "/" + array.name, "expected [{}], got {}", text, shape_text(found->shape));
    }
  }
  if (find(kSelfMask.name) != nullptr) check_mask(where_ + "/" + kSelfMask.name, config);
}

std::int64_t EncodeInputs::size_of(char letter) const {
  switch (letter) {
    case 'B':
      return batch_;
    case 'L':
      return length_;
    case 'G':
      return globals_;
    case 'H':
      return config_->hidden_size;
    default:
      return 2 * radius_ + 1;
  }
}

Buffer<std::uint8_t> EncodeInputs::self_labels(const std::int32_t* mask) const {
  const auto* const dense = dynamic_cast<const DenseConfig*>(&*config_);
  const std::int64_t window = dense != nullptr ? dense->local_radius : 0;
  const std::int64_t radius = window > 0 ? window : length_ - 1, W = 2 * radius + 1;
  // Labels replace the ids that the encoder computes from distances, so they must equal those ids.
  const PositionConfig* const positions = labelled_positions(*config_);
  Buffer<std::uint8_t> labels(length_ * W, Purpose::labels);
  for (std::int64_t i = 0; i < length_ * W; ++i) {
    const std::int64_t query = i / W, key = query + i % W - radius;
    const bool seen = key >= 0 && key < length_ && mask[query * length_ + key] != 0;
    const std::int64_t id = positions != nullptr ? sparse::relative_id(key - query, positions->clip()) : 0;
    labels[i] = seen ? static_cast<std::uint8_t>(id) : sparse::kMasked;
  }
  return labels;
}

const data::NumericArray* EncodeInputs::find(const std::string& name) const {
  const auto found = arrays_.find(name);
  return found == arrays_.end() ? nullptr : &found->second;
}

EncoderInput EncodeInputs::example(std::int64_t b) const {
  EncoderInput input;
  input.long_offsets = {0, length_};
  input.global_offsets = {0, globals_};
  input.sample_ordinals = {b};
  sparse::MasksAndIds masks;
  masks.batch = 1;
  masks.length = length_;
  masks.globals = globals_;
  masks.radius = radius_;
  const std::int64_t hidden = config_->hidden_size;
  for (const Expected& array : arrays_of(*config_)) {
    const data::NumericArray* found = find(array.name);
    if (found == nullptr) continue;
    const std::vector<std::int32_t>& all = found->integers;
    const auto size = static_cast<std::int64_t>(all.size()) / batch_;  // of one example
    if (array.ids != nullptr) {
      input.*array.ids = {all.begin() + b * size, all.begin() + (b + 1) * size};
    } else if (array.adder != nullptr) {
      const std::int64_t rows = array.letters[1] == 'L' ? length_ : globals_, elements = rows * hidden;
      const auto first = found->floats.begin() + b * elements;
      input.*array.adder = Var(Tensor::from({first, first + elements}, {rows, hidden}, Purpose::activations));
    } else if (array.pairs == nullptr) {
      input.labels.l2l = self_labels(all.data() + b * size);
    } else {
      // An array without elements (no global tokens) was still given: null would mean that it was absent.
      static constexpr std::int32_t kNothing = 0;
      masks.*array.pairs = all.empty() ? &kNothing : all.data() + b * size;
    }
  }
  if (config_->has_global_tokens()) input.labels = sparse::labels_from_masks_and_ids(masks, relative_labels_);
  return input;
}

}  // namespace etc::cli
