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

// How sentences are searched: so many tokens together, and in parts one after the other, so that no more translations than
// a part's are held.
struct SearchPlan {
  std::int64_t batch_tokens = 0;
  std::vector<std::size_t> ends;  // of the parts, ascending, the last one that of all sentences
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

  // With which these sentences stay below the limit: as many tokens of a batch as in the call before, halved as often as
  // it takes; 1 is one sentence at a time. Parts hold some batches each, or all where these fit. Translations depend on
  // neither. Throws Error naming the line where one sentence alone does not fit, with the longest translation that would;
  // or saying how many lines may be read at a time. Cost: as peak(), for each choice.
  SearchPlan plan(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines,
                  std::int64_t first_line);

 private:
  using Batch = std::vector<TranslationSource>;
  // Of a batch: positions of all translations, tokens, and their squares.
  using Size = std::array<double, 3>;

  Size size_of(const Batch& batch) const;
  bool known(const Size& size) const;
  std::vector<Batch> largest_batches(std::span<const TranslationSource> sentences, std::int64_t batch_tokens) const;
  void count_batches(std::span<const TranslationSource> sentences, std::int64_t batch_tokens);
  std::int64_t bytes_of_translations(std::span<const TranslationSource> sentences) const;
  std::int64_t bytes_of_parts(std::span<const TranslationSource> sentences, std::int64_t batch_tokens) const;
  SearchPlan in_parts(std::span<const TranslationSource> sentences, std::int64_t room);
  ProcessMemory expected(const Batch& batch, const SearchOptions& search) const;
  std::int64_t taken_alone(const TranslationSource& sentence, const SearchOptions& search) const;
  std::int64_t longest_that_fits(const TranslationSource& sentence) const;
  [[noreturn]] void refuse(std::span<const TranslationSource> sentences, std::int64_t first_line) const;
  [[noreturn]] void refuse_window(std::int64_t lines, std::int64_t taken_beside) const;

  const std::vector<Seq2SeqConfig> models_;
  const TranslatorOptions options_;
  const TranslatorCompute compute_;
  const std::int64_t limit_;
  InferenceFit fit_;
  std::int64_t batch_tokens_;
  std::vector<Size> counted_;  // those that computing_ is known of
  ProcessMemory computing_;    // without texts
  ProcessMemory model_;        // the same for the weights alone
  // On the host: bytes of the lines read at a time, and in peak() of their translations, of the largest window so far.
  std::int64_t lines_ = 0, translations_ = 0;
  bool parts_told_ = false;
  ProcessMemory peak_;
};

}  // namespace etc::translation
