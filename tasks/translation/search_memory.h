// Memory of translating, before it begins: the encoder, keys and values of all hypotheses, scores that are carried, logits
// of a step, counted by the search's own code with translations as long as they may be (translation 8).
#pragma once

#include <array>
#include <vector>

#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "tasks/train/inference_fit.h"
#include "tasks/translation/line_sources.h"

namespace etc::translation {

// An encoder-decoder of a translator, without values.
struct TranslatorModel {
  explicit TranslatorModel(const Seq2SeqConfig& given)
      : config(given), encoder(config, parameters), decoder(config, parameters) {}

  void release_kernels(ComputeType type) {
    encoder.release_kernels(type);
    decoder.release_kernels(type);
  }

  Seq2SeqConfig config;
  ParameterSet parameters;
  Seq2SeqEncoder encoder;
  Seq2SeqDecoder decoder;
};

// Batches are those of search_batches(). Which of them are counted: those that no other one exceeds in sentences' longest
// translations, tokens, and squares of tokens; the memory of a batch grows with these.
class SearchMemory {
 public:
  // Of one model or an ensemble's. Made before the weights are loaded, where all else that stays is; limit: bytes of the
  // process, or of the device where they are translated on one.
  SearchMemory(std::vector<Seq2SeqConfig> models, const TranslatorOptions& options, const TranslatorCompute& compute,
               std::int64_t limit);

  // Expected peak of the process that translates these sentences, read from `lines`, and those of all calls before.
  // Cost: a search that computes nothing (some 0.1 s for 200 steps) for each batch that exceeds all before.
  const ProcessMemory& peak(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines);

  // The tokens of a batch with which these sentences stay below the limit: as many as in the call before, halved as
  // often as it takes; 1 is one sentence at a time. Translations do not depend on it. Throws Error naming the line where
  // one sentence alone does not fit, with the longest translation that would. Cost: as peak(), for each choice.
  std::int64_t fitting_tokens(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines,
                              std::int64_t first_line);

 private:
  using Batch = std::vector<TranslationSource>;
  // Of a batch: positions of all translations, tokens, and their squares.
  using Size = std::array<double, 3>;

  Size size_of(const Batch& batch) const;
  bool known(const Size& size) const;
  std::vector<Batch> largest_batches(std::span<const TranslationSource> sentences, std::int64_t batch_tokens) const;
  void take_texts(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines);
  ProcessMemory expected(const Batch& batch, const SearchOptions& search) const;
  bool fits(const Batch& batch, const SearchOptions& search) const;
  std::int64_t longest_that_fits(const TranslationSource& sentence) const;
  [[noreturn]] void refuse(std::span<const TranslationSource> sentences, std::int64_t first_line) const;

  const std::vector<Seq2SeqConfig> models_;
  const TranslatorOptions options_;
  const TranslatorCompute compute_;
  const std::int64_t limit_;
  InferenceFit fit_;
  std::int64_t batch_tokens_;
  std::vector<Size> counted_;  // those known: in peak_, or to fit
  std::int64_t texts_ = 0;     // bytes of the largest window so far
  ProcessMemory peak_;
};

}  // namespace etc::translation
