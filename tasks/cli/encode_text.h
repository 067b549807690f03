// `etc encode --text`: hidden states of texts as they come, into JSON lines, NumPy arrays or HDF5.
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

// The second file of NumPy's form; "" where there is none.
std::string offsets_file(const EncodeTextOptions& options);

// A text is a JSON string or an object with "text" and, if wanted, "id"; without one its id is its number from 0. Of
// each text in order
//   JSON lines  {"id", "tokens": {"read", "cut"}, "states": [H] (mean), [L][H] or [G][H]}, written before the next text is
//               waited for; *.json: one array of them
//   NumPy       float32 [texts, H] (mean) or the rows of all texts [ΣL, H], and beside them OUTPUT.offsets.npy, int64
//               [texts + 1]: text i has rows offsets[i] … offsets[i+1]-1
//   HDF5        the layout of prepared data (encode_dataset.h): id, tokens_read, tokens_cut, and long, global or mean
// Throws UsageError on an output of another name, and on global states of an encoder without; Error naming file and line
// on a text that is none, and where nothing was read. Without an output file on any error.
// Several processes call it; the first one reads and writes, and each encodes a share of the texts of a file. Of a stream,
// which gives one text at a time, the first one encodes all.
void encode_texts(const TextEncoder& encoder, const EncodeTextOptions& options);

}  // namespace etc::cli
