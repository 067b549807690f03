// The output of `etc encode --data`: hidden states of prepared examples, in the layout of prepared data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/compute_type.h"
#include "etc_core/base/device.h"
#include "etc_core/nn/encoder_config.h"

namespace etc::cli {

// The features of one encoded example (data/dataset.h; all of them but the token ids are flat lists of floats):
//   id                                             of the prepared example
//   long_token_ids [L], global_token_ids [G]       the token of each row
//   long [L, H], global [G, H]                     the last layer's states
// and with all_layers
//   embedding_long, embedding_global               states of the embedding stage
//   layer_<i>_long, layer_<i>_global               those after layer i
//   layer_<i>_scores_{l2l,l2g,g2g,g2l}             [N, L, W], [N, L, G], [N, G, G], [N, G, L]: the scores carried after
//                                                  layer i, for the types that carry any
// The root attribute preprocess_config holds the model's configuration, and the task, configuration and content of the
// data it came from.
data::Schema encoded_schema(const EncoderConfig& model, bool all_layers);

// Settings of an encoding: device, number types, memory limit, and which states to write.
struct EncodeOn {
  Device device = Device::cpu;
  InferenceTypes types;
  std::int64_t memory_limit = 0;  // bytes of the process, or of the device; 0: none
  bool all_layers = false;
  bool allow_incomplete = false;  // as in DataDemand; the output is then marked as incomplete like the data
};

// Encodes the examples of `files` in their order into `output`, one micro-batch at a time; an example's bits do not
// depend on its neighbours. model: a model directory. The section task of its config.json determines how the data are
// fed and what is added to the embeddings; a model without that section is fed by the task's defaults, and nothing is
// added. Throws Error as the reader, the task and the encoder do, and when the data are of another task or vocabulary,
// or empty, or when an example does not fit into the memory limit; Interrupted after a stop signal. On any error no
// output file remains.
void encode_dataset(const std::vector<std::string>& files, const std::filesystem::path& model, const EncodeOn& on,
                    const std::filesystem::path& output);

}  // namespace etc::cli
