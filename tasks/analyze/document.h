// One document with its attention drawn on it: a self-contained HTML page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/nn/encoder.h"
#include "tasks/analyze/model_analysis.h"

namespace etc::analyze {

struct PageRequest {
  std::int64_t top = 16;  // keys of each query at most
  // Shown; empty: as many, evenly spread, as leave room for kUsefulKeys of each query.
  std::vector<std::int64_t> layers = {};
};

struct DocumentRequest {
  std::vector<std::string> data;  // prepared files, shards of one data set; empty: `input`
  std::filesystem::path input;    // a raw file of the model's task; of a model for plain text such a text
  std::int64_t number = 0;        // of the example in `data`, or of the record (of texts: the document) in `input`
  std::int64_t part = 0;          // of a record that makes several examples: windows, questions
  std::filesystem::path vocab;    // empty: the one kept in the model folder
  PageRequest page;
  bool allow_incomplete = false;
};

inline constexpr std::int64_t kPageBytes = 5'000'000;
inline constexpr std::int64_t kUsefulKeys = 4;

// What the page shows: tokens, and of every layer, operator, head and query the keys it attends to most.
struct DocumentAttention {
  std::string title, task, residual;
  std::vector<std::string> long_tokens, global_tokens;  // as the vocabulary spells them
  std::int64_t heads = 0, top = 0, layers_of_model = 0;
  bool carries = false;  // scores before and after the carry differ

  // Of an entry of the page: a number of a key and the bit of its set; all of it.
  int key_bytes() const { return std::max(long_tokens.size(), global_tokens.size()) < 0x7fff ? 2 : 3; }
  int entry_bytes() const { return key_bytes() + (carries ? 3 : 2); }

  struct Layer {
    std::string op;  // "long", "global" or "self"
    std::int64_t layer = 0, queries = 0;
    bool keys_are_global[2] = {false, false};  // of each key set
    std::vector<sparse::TopKey> keys;          // [N, queries, top]
  };
  std::vector<Layer> layers;
};

// Of one example that is fed already, on the host: all but title and task. As many keys of each query are kept as fit into
// a page, `top` at most. where: what messages begin with. Throws Error where there is no such layer, where not even one
// key of each query fits, and where the attention is linear.
DocumentAttention attention_of(Encoder& encoder, Tape& tape, const EncoderInput& input,
                               const data::Tokenizer& vocabulary, const PageRequest& request, const std::string& where);

// Runs the model on one example, prepared or made of a raw record (document_source.h). Throws Error as analyse_model and
// attention_of do; where the vocabulary is missing or another one's; where there is no such example or record.
DocumentAttention attend_document(const std::filesystem::path& folder, const DocumentRequest& request);

// The page: text, choice of layer, head and token, whom it attends to by type. Works without a network; no resource
// outside of it.
std::string document_page(const DocumentAttention& document);

}  // namespace etc::analyze
