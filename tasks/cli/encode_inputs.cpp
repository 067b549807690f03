#include "tasks/cli/encode_inputs.h"

#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"

namespace etc::cli {

namespace {

// One array of the file: its shape, and the member that an example's part of it becomes.
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

std::vector<data::ArrayRequest> requests() {
  std::vector<data::ArrayRequest> all;
  for (const Expected& array : kArrays) all.push_back({array.name, array.floating, array.required});
  return all;
}

}  // namespace

EncodeInputs::EncodeInputs(const std::filesystem::path& path, const EtcConfig& config)
    : where_("encode: " + path.string() + ":/inputs"),
      config_(config),
      arrays_(data::read_arrays(path, "inputs", requests())) {
  for (const char* name : {kTokens.name, kGlobals.name}) {
    if (arrays_.at(name).shape.size() != 2) {
      fail(where_ + "/" + name, "expected two dimensions, got {}", shape_text(arrays_.at(name).shape));
    }
  }
  batch_ = arrays_.at(kTokens.name).shape[0];
  length_ = arrays_.at(kTokens.name).shape[1];
  globals_ = arrays_.at(kGlobals.name).shape[1];
  for (const Expected& array : kArrays) {
    const data::NumericArray* found = find(array.name);
    if (found == nullptr) continue;
    std::vector<std::int64_t> sizes;
    std::string text;
    for (const char* letter = array.letters; *letter != '\0'; ++letter) {
      const std::int64_t size = *letter == 'B'   ? batch_
                                : *letter == 'L' ? length_
                                : *letter == 'G' ? globals_
                                : *letter == 'H' ? config_.hidden_size
                                                 : 2 * config_.local_radius + 1;
      sizes.push_back(size);
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", *letter, size);
    }
    if (found->shape != sizes) {
      fail(where_ + "/" + array.name, "expected [{}], got {}", text, shape_text(found->shape));
    }
  }
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
  masks.radius = config_.local_radius;
  for (const Expected& array : kArrays) {
    const data::NumericArray* found = find(array.name);
    if (found == nullptr) continue;
    const std::vector<std::int32_t>& all = found->integers;
    const auto size = static_cast<std::int64_t>(all.size()) / batch_;  // of one example
    if (array.ids != nullptr) {
      input.*array.ids = {all.begin() + b * size, all.begin() + (b + 1) * size};
    } else if (array.adder != nullptr) {
      const std::int64_t rows = array.letters[1] == 'L' ? length_ : globals_, elements = rows * config_.hidden_size;
      const auto first = found->floats.begin() + b * elements;
      input.*array.adder =
          Var(Tensor::from({first, first + elements}, {rows, config_.hidden_size}, Purpose::activations));
    } else {
      // An array without elements (no global tokens) was given all the same: null would mean it was not.
      static constexpr std::int32_t kNothing = 0;
      masks.*array.pairs = all.empty() ? &kNothing : all.data() + b * size;
    }
  }
  input.labels = sparse::labels_from_masks_and_ids(masks, config_.relative_labels());
  return input;
}

}  // namespace etc::cli
