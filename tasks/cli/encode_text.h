// `etc encode --text`: hidden states of texts from a stream or file, as JSON lines, NumPy arrays or HDF5.
#pragma once

#include <string>
#include <vector>

#include "tasks/inference/text_encoder.h"

namespace etc::cli {

struct EncodeTextOptions {
  std::vector<std::string> inputs;  // files of JSON; "-": standard input
  std::string states = "mean";      // long, global or mean
  std::string output;               // "-" or *.jsonl, *.json, *.npy, *.h5
};

// The second output file of the NumPy format; "" for other formats.
std::string offsets_file(const EncodeTextOptions& options);

// A text is a JSON string or an object with "text" and, optionally, "id"; the default id is its number from 0. For each
// text in order
//   JSON lines  {"id", "tokens": {"read", "cut"}, "states": [H] (mean), [L][H] or [G][H]}, written before the next
//               text is awaited; *.json: one array of them
//   NumPy       float32 [texts, H] (mean) or the rows of all texts [ΣL, H], and beside them OUTPUT.offsets.npy, int64
//               [texts + 1]: text i has rows offsets[i] … offsets[i+1]-1
//   HDF5        the layout of prepared data (encode_dataset.h): id, tokens_read, tokens_cut, and long, global or mean
// Throws UsageError for an output with another extension, and for global states of an encoder without them; Error
// naming file and line for a line that is not a text, and Error when nothing was read. On any error no output file
// remains. With several processes this is a collective call: the first one reads and writes, and each encodes a share
// of the texts of a file. From a stream, which delivers one text at a time, the first process encodes all.
void encode_texts(const TextEncoder& encoder, const EncodeTextOptions& options);

}  // namespace etc::cli
