// The inputs of `etc encode`: padded arrays in one HDF5 group, as the reference model takes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "data/h5/array_file.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"

namespace etc::cli {

// Group "inputs" of a file:
//   token_ids [B, L], global_token_ids [B, G]                                   required
//   segment_ids, position_ids [B, L], global_segment_ids, global_position_ids [B, G]
//   long_embedding_adder [B, L, H], global_embedding_adder [B, G, H]            floats
//   {l2l,l2g,g2g,g2l}_att_mask      [B, L, W], [B, L, G], [B, G, G], [B, G, L]  absent: everything visible
//   {l2l,l2g,g2g,g2l}_relative_att_ids  same shapes                             absent: no relative attention
class EncodeInputs {
 public:
  // Throws Error naming file and array on everything data::read_arrays refuses and on shapes that do not fit.
  EncodeInputs(const std::filesystem::path& path, const EtcConfig& config);

  std::int64_t batch() const { return batch_; }      // B
  std::int64_t length() const { return length_; }    // L
  std::int64_t globals() const { return globals_; }  // G

  // Example b alone, padding and packing included. Throws Error naming the example when masks, ids and the model's
  // configuration contradict each other (etc-core 2.2, rules 8-10).
  EncoderInput example(std::int64_t b) const;

 private:
  const data::NumericArray* find(const std::string& name) const;

  std::string where_;
  const EtcConfig config_;
  std::int64_t batch_ = 0, length_ = 0, globals_ = 0;
  std::map<std::string, data::NumericArray> arrays_;
};

}  // namespace etc::cli
