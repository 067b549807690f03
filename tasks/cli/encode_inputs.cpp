#include "tasks/cli/encode_inputs.h"

#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/shape.h"

namespace etc::cli {

namespace {

struct Expected {
  const char* name;
  const char* letters;  // "BLW": one letter per dimension
  bool floating = false;
  bool required = false;
};

constexpr Expected kArrays[] = {{"token_ids", "BL", false, true},
                                {"global_token_ids", "BG", false, true},
                                {"segment_ids", "BL"},
                                {"global_segment_ids", "BG"},
                                {"position_ids", "BL"},
                                {"global_position_ids", "BG"},
                                {"long_embedding_adder", "BLH", true},
                                {"global_embedding_adder", "BGH", true},
                                {"l2l_att_mask", "BLW"},
                                {"l2g_att_mask", "BLG"},
                                {"g2g_att_mask", "BGG"},
                                {"g2l_att_mask", "BGL"},
                                {"l2l_relative_att_ids", "BLW"},
                                {"l2g_relative_att_ids", "BLG"},
                                {"g2g_relative_att_ids", "BGG"},
                                {"g2l_relative_att_ids", "BGL"}};

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
  for (const char* name : {"token_ids", "global_token_ids"}) {
    if (arrays_.at(name).shape.size() != 2) {
      fail(where_ + "/" + name, "expected two dimensions, got {}", shape_text(arrays_.at(name).shape));
    }
  }
  batch_ = arrays_.at("token_ids").shape[0];
  length_ = arrays_.at("token_ids").shape[1];
  globals_ = arrays_.at("global_token_ids").shape[1];
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
  const auto integers = [&](const char* name) -> std::vector<std::int32_t> {
    const data::NumericArray* array = find(name);
    if (array == nullptr) return {};
    const auto size = static_cast<std::int64_t>(array->integers.size()) / batch_;
    return {array->integers.begin() + b * size, array->integers.begin() + (b + 1) * size};
  };
  input.token_ids = integers("token_ids");
  input.global_token_ids = integers("global_token_ids");
  input.segment_ids = integers("segment_ids");
  input.global_segment_ids = integers("global_segment_ids");
  input.position_ids = integers("position_ids");
  input.global_position_ids = integers("global_position_ids");
  const auto adder = [&](const char* name, std::int64_t rows) -> Var {
    const data::NumericArray* array = find(name);
    if (array == nullptr) return {};
    const std::int64_t size = rows * config_.hidden_size;
    return Var(Tensor::from({array->floats.begin() + b * size, array->floats.begin() + (b + 1) * size},
                            {rows, config_.hidden_size}, Purpose::activations));
  };
  input.long_embedding_adder = adder("long_embedding_adder", length_);
  input.global_embedding_adder = adder("global_embedding_adder", globals_);

  sparse::MasksAndIds arrays;
  arrays.batch = 1;
  arrays.length = length_;
  arrays.globals = globals_;
  arrays.radius = config_.local_radius;
  const auto part = [&](const char* name) -> const std::int32_t* {
    const data::NumericArray* array = find(name);
    if (array == nullptr) return nullptr;
    // An array without elements (no global tokens) was given all the same: null would mean it was not.
    static constexpr std::int32_t kNothing = 0;
    if (array->integers.empty()) return &kNothing;
    return array->integers.data() + b * static_cast<std::int64_t>(array->integers.size()) / batch_;
  };
  arrays.l2l_mask = part("l2l_att_mask");
  arrays.l2g_mask = part("l2g_att_mask");
  arrays.g2g_mask = part("g2g_att_mask");
  arrays.g2l_mask = part("g2l_att_mask");
  arrays.l2l_ids = part("l2l_relative_att_ids");
  arrays.l2g_ids = part("l2g_relative_att_ids");
  arrays.g2g_ids = part("g2g_relative_att_ids");
  arrays.g2l_ids = part("g2l_relative_att_ids");
  input.labels = sparse::labels_from_masks_and_ids(arrays, config_.relative_labels());
  return input;
}

}  // namespace etc::cli
