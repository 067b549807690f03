// The inputs of `etc encode`: padded arrays in one HDF5 group, in the form of the reference model's inputs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "data/h5/array_file.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"

namespace etc::cli {

// Group "inputs" of a file:
//   token_ids [B, L], global_token_ids [B, G]                                   required
//   segment_ids, position_ids [B, L], global_segment_ids, global_position_ids [B, G]
//   long_embedding_adder [B, L, H], global_embedding_adder [B, G, H]            floats
//   {l2l,l2g,g2g,g2l}_att_mask      [B, L, W], [B, L, G], [B, G, G], [B, G, L]  absent: everything visible
//   {l2l,l2g,g2g,g2l}_relative_att_ids  same shapes                             absent: no relative attention
// An encoder without global tokens has no array of them, and one mask:
//   self_att_mask [B, L, L]                                                     absent: everything visible
// An encoder that defines its own attention pattern (BigBird, Performer, causal, an encoder-decoder) takes no mask.
class EncodeInputs {
 public:
  // Throws Error naming file and array for everything that data::read_arrays refuses, for shapes that do not match, and
  // for a self_att_mask that the model cannot use, or whose relative ids do not fit into a byte.
  EncodeInputs(const std::filesystem::path& path, const EncoderConfig& config);

  std::int64_t batch() const { return batch_; }      // B
  std::int64_t length() const { return length_; }    // L
  std::int64_t globals() const { return globals_; }  // G; 0 if the encoder has no global tokens

  // Example b alone, with padding and packing. Throws Error naming the example when masks, ids and the model's
  // configuration contradict each other (etc-core 2.2, rules 8-10).
  EncoderInput example(std::int64_t b) const;

 private:
  const data::NumericArray* find(const std::string& name) const;
  std::int64_t size_of(char letter) const;
  // Labels [L, W] for a mask [L, L]: ids of distances (sparse/labels/relative_ids.h) if they select rows of tables,
  // else 0.
  Buffer<std::uint8_t> self_labels(const std::int32_t* mask) const;

  std::string where_;
  const ModelConfig config_;
  std::int64_t radius_ = 0, relative_labels_ = 0;  // of an ETC: of the local window; R
  std::int64_t batch_ = 0, length_ = 0, globals_ = 0;
  std::map<std::string, data::NumericArray> arrays_;
};

}  // namespace etc::cli
