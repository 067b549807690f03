// One document and its attention as a self-contained HTML page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "etc_core/nn/encoder.h"
#include "sparse/attention_statistics.h"

namespace etc::analyze {

struct PageRequest {
  std::int64_t top = 16;  // maximum number of keys per query
  // The layers shown; empty: as many, evenly spaced, as leave room for kUsefulKeys per query.
  std::vector<std::int64_t> layers = {};
};

struct DocumentRequest {
  std::vector<std::string> data;  // prepared files, shards of one data set; empty: `input`
  std::filesystem::path input;    // a raw file of the model's task; a plain text for models of plain text
  std::int64_t number = 0;        // index of the example in `data`, or of the record (document of a text) in `input`
  std::int64_t part = 0;          // index of the example for records with several: windows, questions
  std::filesystem::path vocab;    // empty: the one kept in the model folder
  PageRequest page;
  bool allow_incomplete = false;
};

inline constexpr std::int64_t kPageBytes = 5'000'000;
inline constexpr std::int64_t kUsefulKeys = 4;

// The contents of the page: tokens and, for every layer, operator, head and query, the keys it attends to most.
struct DocumentAttention {
  std::string title, task, residual;
  std::vector<std::string> long_tokens, global_tokens;  // as the vocabulary spells them
  std::int64_t heads = 0, top = 0, layers_of_model = 0;
  bool carries = false;  // with running scores: the layer's own score and the logit differ

  // Sizes of an entry of the page: of a key index with the bit of its key set, and of the whole entry.
  int key_bytes() const { return std::max(long_tokens.size(), global_tokens.size()) < 0x7fff ? 2 : 3; }
  int entry_bytes() const { return key_bytes() + (carries ? 3 : 2); }

  struct Layer {
    std::string op;  // "long", "global" or "self"
    std::int64_t layer = 0, queries = 0;
    bool keys_are_global[2] = {false, false};  // for each key set
    std::vector<sparse::TopKey> keys;          // [N, queries, top]
  };
  std::vector<Layer> layers;
};

// Runs one example that has already been fed, on the host; sets everything except title and task. Each query keeps as many
// keys as fit into a page, at most `top`. where: prefix of messages. Throws Error if a layer does not exist, if not even one
// key per query fits, and for linear attention.
DocumentAttention attention_of(Encoder& encoder, Tape& tape, const EncoderInput& input,
                               const data::Tokenizer& vocabulary, const PageRequest& request, const std::string& where);

// Runs the model on one example, prepared or made from a raw record (document_source.h). Throws Error like analyse_model and
// attention_of, if the vocabulary is missing or a different one, and if the example or record does not exist.
DocumentAttention attend_document(const std::filesystem::path& folder, const DocumentRequest& request);

// The HTML page: the text, a selection of layer, head and token, and the keys it attends to by type. It needs no network and
// no other file.
std::string document_page(const DocumentAttention& document);

// Whether a file begins as such a page does, or is empty.
bool is_document_page(const std::filesystem::path& file);

}  // namespace etc::analyze
