// Forecast of the memory of a translation: the encoder, keys and values of all hypotheses, carried scores, logits of a step.
// It is counted by running the search's own code without values, with translations of maximum length (translation 8).
#pragma once

#include <array>
#include <vector>

#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "tasks/train/inference_fit.h"
#include "tasks/translation/line_sources.h"

namespace etc::translation {

// An encoder-decoder of a translator whose parameters have no values yet.
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

// How sentences are searched: the number of tokens searched together, and a division into parts that are processed one
// after the other, so that only the translations of one part are held in memory.
struct SearchPlan {
  std::int64_t batch_tokens = 0;
  std::vector<std::size_t> ends;  // ends of the parts, ascending; the last one is the number of sentences
};

// Batches are those of search_batches(). A batch's memory grows with the sums of its sentences' maximum translation lengths,
// tokens, and squares of tokens, so only the batches that are largest in one of these are counted.
class SearchMemory {
 public:
  // models: one, or the members of an ensemble. Construct it before the weights are loaded, when everything else that stays
  // in memory exists. limit: bytes of the process, or of the device if one translates.
  SearchMemory(std::vector<Seq2SeqConfig> models, const TranslatorOptions& options, const TranslatorCompute& compute,
               std::int64_t limit);

  // Expected peak of the process that translates these sentences, read from `lines`, and those of all previous calls. Cost:
  // a search without computation (about 0.1 s for 200 steps) for each batch that exceeds all previous ones.
  const ProcessMemory& peak(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines);

  // About peak() of searching these sentences by this plan, extrapolated from one and two of them: memory grows linearly with
  // the sentences of a batch. Cost: two such searches without computation (about 0.05 s for 6 layers and 200 steps).
  ProcessMemory estimate(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines,
                         const SearchPlan& plan) const;

  // The plan with which these sentences stay below the limit. It starts with the tokens per batch of the previous call and
  // halves them until the memory fits; 1 is one sentence at a time. A part holds several batches, or all if they fit.
  // Translations do not depend on the plan. Throws Error naming the line if a single sentence does not fit, with the longest
  // translation that would, or stating how many lines may be read at a time. Cost: that of peak() for each attempt.
  SearchPlan plan(std::span<const TranslationSource> sentences, std::span<const SourceLine> lines,
                  std::int64_t first_line);

 private:
  using Batch = std::vector<TranslationSource>;
  // Sums over a batch: maximum translation lengths, tokens, squares of tokens.
  using Size = std::array<double, 3>;

  Size size_of(const Batch& batch) const;
  bool known(const Size& size) const;
  std::vector<Batch> largest_batches(std::span<const TranslationSource> sentences, std::int64_t batch_tokens) const;
  void count_batches(std::span<const TranslationSource> sentences, std::int64_t batch_tokens);
  std::int64_t bytes_of_translations(std::span<const TranslationSource> sentences) const;
  std::int64_t bytes_of_parts(std::span<const TranslationSource> sentences, std::int64_t batch_tokens) const;
  SearchPlan in_parts(std::span<const TranslationSource> sentences, std::int64_t room);
  ProcessMemory expected(const Batch& batch, const SearchOptions& search, bool with_loading = true) const;
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
  std::vector<Size> counted_;  // batches included in computing_
  ProcessMemory computing_;    // forecast without texts
  ProcessMemory model_;        // forecast for the weights alone
  // On the host, for the largest window so far: bytes of the lines read at a time and, in peak(), of their translations.
  std::int64_t lines_ = 0, translations_ = 0;
  bool parts_told_ = false;
  ProcessMemory peak_;
};

}  // namespace etc::translation
