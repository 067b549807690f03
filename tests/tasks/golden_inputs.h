// Model inputs that the reference made of a record, and labels compared with them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "etc_core/base/buffer.h"
#include "etc_core/nn/etc_config.h"
#include "sparse/labels/labels.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"

namespace etc::test {

// A view of a stored matrix [rows, cols], padding included.
struct Matrix {
  GoldenArray<std::uint8_t> array;
  std::uint8_t at(std::int64_t row, std::int64_t col) const {
    return array.values[static_cast<std::size_t>(row * array.shape[1] + col)];
  }
};

// Every matrix below <group>/derived/<index>, and the real lengths of the record.
struct GoldenInputs {
  std::map<std::string, Matrix> matrices;
  std::int64_t L = 0, G = 0, W = 0;

  GoldenInputs() = default;
  GoldenInputs(const GoldenFile& file, const std::string& group, const std::string& index) {
    const auto extra = [&](const char* name) {
      return file.read<std::int64_t>(group + "/extra/" + name).values[static_cast<std::size_t>(std::stoll(index))];
    };
    L = extra("long_length");
    G = extra("global_length");
    W = 2 * file.int_attribute(group + "/derived", "local_radius") + 1;
    const std::string folder = group + "/derived/" + index;
    for (const std::string& name : file.data_sets(folder)) {
      matrices[name] = {file.read<std::uint8_t>(folder + "/" + name)};
    }
  }
  const Matrix& at(const std::string& name) const { return matrices.at(name); }
  bool has(const std::string& name) const { return matrices.count(name) != 0; }
};

// The part of a model configuration that determines the labels.
inline EtcConfig golden_label_model(const GoldenFile& file, const std::string& group) {
  EtcConfig model;
  model.vocab_size = 1 << 20;
  model.local_radius = file.int_attribute(group + "/derived", "local_radius");
  model.relative_pos_max_distance = file.int_attribute(group + "/derived", "relative_pos_max_distance");
  model.relative_vocab_size = 2 * model.relative_pos_max_distance + 4;
  return model;
}

// Number of pairs where the label is not (mask ? id : kMasked).
inline std::int64_t differences(const Buffer<std::uint8_t>& labels, std::int64_t rows, std::int64_t cols,
                                const Matrix& mask, bool mask_transposed, const Matrix& ids, bool ids_transposed) {
  REQUIRE(labels.size() == rows * cols);
  std::int64_t different = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) {
      const bool visible = (mask_transposed ? mask.at(c, r) : mask.at(r, c)) == 1;
      const std::uint8_t id = ids_transposed ? ids.at(c, r) : ids.at(r, c);
      if (labels[r * cols + c] != (visible ? id : sparse::kMasked)) ++different;
    }
  }
  return different;
}

}  // namespace etc::test
