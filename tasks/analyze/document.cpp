#include "tasks/analyze/document.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "etc_core/nn/attention_analysis.h"
#include "sparse/etc_attention.h"
#include "tasks/analyze/document_source.h"
#include "tasks/analyze/results.h"
#include "tasks/text/shown_piece.h"
#include "tasks/train/model.h"

namespace etc::analyze {

namespace {

constexpr const char* kAnalyzeDocument = "etc analyze";
constexpr std::int64_t kPageRest = 60'000;  // size of the page without entries and tokens

std::vector<std::string> pieces_of(const data::Tokenizer& vocabulary, const std::vector<std::int32_t>& ids) {
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids) pieces.push_back(text::shown_piece(vocabulary, id));
  return pieces;
}

// `count` evenly spaced layers of a model, including the first and the last; for count 1 the last.
std::vector<std::int64_t> spread_layers(std::int64_t layers, std::int64_t count) {
  if (count <= 1) return {layers - 1};
  std::vector<std::int64_t> chosen;
  for (std::int64_t n = 0; n < count; ++n) chosen.push_back(n * (layers - 1) / (count - 1));
  return chosen;
}

// Chooses document.top and the layers so that the page stays below its maximum size.
std::vector<std::int64_t> fit_page(const PageRequest& request, DocumentAttention& document, const std::string& where) {
  std::int64_t text = kPageRest;
  for (const auto* tokens : {&document.long_tokens, &document.global_tokens}) {
    for (const std::string& token : *tokens) text += std::ssize(token) + 12;
  }
  const std::int64_t queries = std::ssize(document.long_tokens) + std::ssize(document.global_tokens);
  const std::int64_t of_layer = (queries * document.heads * document.entry_bytes() * 4 + 2) / 3;  // in base 64
  const std::int64_t fit = std::max<std::int64_t>(0, (kPageBytes - text) / of_layer);  // keys, over all layers
  std::vector<std::int64_t> layers = request.layers;
  if (layers.empty()) {
    const std::int64_t wanted = std::min(request.top, kUsefulKeys);
    const std::int64_t count = std::clamp<std::int64_t>(fit / wanted, 1, document.layers_of_model);
    layers = spread_layers(document.layers_of_model, count);
  }
  document.top = std::min(request.top, fit / std::ssize(layers));
  if (document.top < 1) {
    fail(where,
         "the document: {} tokens, {} layers of {} heads: not even one key of each fits into a page of {} bytes (fewer "
         "layers take less)",
         queries, layers.size(), document.heads, kPageBytes);
  }
  return layers;
}

void check_layers(const PageRequest& request, std::int64_t layers, const std::string& where) {
  for (const std::int64_t layer : request.layers) {
    if (layer < 0 || layer >= layers) fail_usage(where, "--layers: expected layers below {}, got {}", layers, layer);
  }
}

}  // namespace

DocumentAttention attention_of(Encoder& encoder, Tape& tape, const EncoderInput& input,
                               const data::Tokenizer& vocabulary, const PageRequest& request,
                               const std::string& where) {
  const EncoderConfig& model = encoder.config();
  DocumentAttention document;
  document.residual = residual_text(model);
  document.long_tokens = pieces_of(vocabulary, input.token_ids);
  document.global_tokens = pieces_of(vocabulary, input.global_token_ids);
  document.heads = model.num_attention_heads;
  document.layers_of_model = model.num_hidden_layers;
  document.carries = model.carries_scores();
  check_layers(request, document.layers_of_model, where);
  const std::vector<std::int64_t> layers = fit_page(request, document, where);
  AnalysisSettings settings;
  settings.top = document.top;
  settings.divergences = settings.label_mass = settings.distance_mass = false;
  AttentionAnalysis analysis(settings, [&](const LayerStatistics& of) {
    const bool global = of.op == &sparse::kGlobalAttention;
    const bool etc = global || of.op == &sparse::kLongAttention;
    if (std::find(layers.begin(), layers.end(), of.layer) == layers.end()) return;
    document.layers.push_back({short_name(*of.op), of.layer, of.queries, {global, etc && !global}, of.top});
  });
  ForwardOptions options;
  options.attention_watch = std::ref(analysis);
  encoder.forward(tape, input, options);
  if (document.layers.empty()) fail(where, "this model's attention is linear: it has no probabilities to look at");
  return document;
}

DocumentAttention attend_document(const std::filesystem::path& folder, const DocumentRequest& request) {
  const DocumentSource source = open_document(folder, request);
  Tape tape(Recording::off);
  const EncoderInput input = source.feed(tape);
  DocumentAttention document =
      attention_of(source.encoder, tape, input, source.vocabulary, request.page, kAnalyzeDocument);
  document.title = source.title;
  document.task = source.task;
  return document;
}

}  // namespace etc::analyze
