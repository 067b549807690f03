#include "tasks/analyze/document.h"

#include <algorithm>

#include "data/text/tokenizer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "sparse/etc_attention.h"
#include "tasks/train/fed_encoder.h"
#include "tasks/train/model.h"

namespace etc::analyze {

namespace {

constexpr const char* kAnalyzeDocument = "etc analyze";
constexpr std::int64_t kKeyBytes = 8;       // of an entry in the page: 6 bytes in base 64
constexpr std::int64_t kPageRest = 60'000;  // what the page has beside entries and tokens

std::shared_ptr<const data::Tokenizer> vocabulary_of(const FedEncoder& fed, const std::filesystem::path& folder,
                                                     const std::filesystem::path& given) {
  const DataIdentity data = DataIdentity::of(fed.document());
  std::filesystem::path path = given;
  if (path.empty() && !data.vocab_file.empty()) path = folder / data.vocab_file;
  if (path.empty()) {
    fail_usage(kAnalyzeDocument, "--document: {} keeps no vocabulary: give that of the data with --vocab",
               folder.string());
  }
  return Vocabulary(path, fed.reader()->info().vocab_sha256).tokenizer;
}

std::vector<std::string> pieces_of(const data::Tokenizer& vocabulary, const std::vector<std::int32_t>& ids) {
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids) {
    pieces.push_back(id < vocabulary.vocab_size() ? vocabulary.piece(id) : fmt::format("[{}]", id));
  }
  return pieces;
}

// The most keys of each query that fit into a page, `most` at most.
std::int64_t keys_that_fit(const EncoderConfig& model, const DocumentAttention& document, std::int64_t most,
                           const std::string& where) {
  std::int64_t text = kPageRest;
  for (const auto* tokens : {&document.long_tokens, &document.global_tokens}) {
    for (const std::string& token : *tokens) text += std::ssize(token) + 12;
  }
  const std::int64_t queries = std::ssize(document.long_tokens) + std::ssize(document.global_tokens);
  const std::int64_t rows = queries * model.num_hidden_layers * model.num_attention_heads;
  const std::int64_t fit = (kPageBytes - text) / (rows * kKeyBytes);
  if (fit < 1) {
    fail(where,
         "the document: {} tokens in {} layers of {} heads: not even one key of each fits into a page of {} bytes",
         queries, model.num_hidden_layers, model.num_attention_heads, kPageBytes);
  }
  return std::min(most, fit);
}

}  // namespace

DocumentAttention attention_of(Encoder& encoder, Tape& tape, const EncoderInput& input,
                               const data::Tokenizer& vocabulary, std::int64_t top, const std::string& where) {
  const EncoderConfig& model = encoder.config();
  DocumentAttention document;
  document.residual = residual_text(model);
  document.long_tokens = pieces_of(vocabulary, input.token_ids);
  document.global_tokens = pieces_of(vocabulary, input.global_token_ids);
  document.heads = model.num_attention_heads;
  document.top = keys_that_fit(model, document, top, where);
  AnalysisSettings settings;
  settings.top = document.top;
  AttentionAnalysis analysis(settings, [&](const LayerStatistics& of) {
    const std::string name = of.op->name;
    const bool global = of.op == &sparse::kGlobalAttention;
    const bool etc = global || of.op == &sparse::kLongAttention;
    document.carries = document.carries || of.carries;
    document.layers.push_back({name.substr(0, name.find('_')), of.layer, of.queries, {global, etc && !global}, of.top});
  });
  ForwardOptions options;
  options.attention_watch = std::ref(analysis);
  encoder.forward(tape, input, options);
  if (document.layers.empty()) fail(where, "this model's attention is linear: it has no probabilities to look at");
  return document;
}

DocumentAttention attend_document(const std::filesystem::path& folder, const DocumentRequest& request) {
  FedEncoder fed(request.data, folder, request.allow_incomplete);
  const std::int64_t size = fed.reader()->size();
  if (request.example < 0 || request.example >= size) {
    fail_usage(kAnalyzeDocument, "--document {}: expected the number of an example below {}", request.example, size);
  }
  const auto vocabulary = vocabulary_of(fed, folder, request.vocab);
  fed.load(Device::cpu, ComputeType::fp32);
  const std::vector<data::LoadedExample> alone = {
      {request.example, request.example, fed.reader()->read(request.example)}};
  Tape tape(Recording::off);
  const EncoderInput input = fed.feed(tape, alone);
  DocumentAttention document = attention_of(fed.encoder(), tape, input, *vocabulary, request.top, kAnalyzeDocument);
  document.title = fmt::format("example {} of {}", request.example, fed.where());
  document.task = fed.reader()->info().task;
  return document;
}

}  // namespace etc::analyze
