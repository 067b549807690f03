#include "tasks/translation/score.h"

#include <string>

#include "data/readers/text_lines.h"
#include "data/text/bleu_words.h"
#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/version.h"
#include "tasks/translation/bootstrap.h"

namespace etc::translation {

namespace {

using Lines = std::vector<std::string>;

Lines read_lines(const std::filesystem::path& path) {
  data::ByteStream stream(path);
  data::TextLines text(stream);
  text.skip_byte_order_mark();
  Lines lines;
  try {
    for (std::string line; text.append(line); line.clear()) {
      lines.emplace_back(data::without_line_end(line));
      if (const auto bad = data::invalid_utf8(lines.back())) {
        fail(fmt::format("{}: line {}", data::raw_file_text(path), lines.size()), "byte {} is not UTF-8", *bad);
      }
    }
  } catch (const data::InputFault& fault) {
    fail(data::raw_file_text(path), "{}", fault.what());
  }
  return lines;
}

void require_equal_lines(const std::filesystem::path& a, const Lines& a_lines, const std::filesystem::path& b,
                         const Lines& b_lines) {
  if (a_lines.size() == b_lines.size()) return;
  fail(b.string(), "expected as many lines as {} has: {}, got {}", data::raw_file_text(a), a_lines.size(),
       b_lines.size());
}

// A line's words with a blank at both ends; <unk>, which the 13a rules cut into three words, is one again.
std::string words_with_unknown(const std::string& line, const BleuOptions& given) {
  constexpr std::string_view kCut = " < unk > ";
  std::string words = " " + bleu_words(line, given) + " ";
  // The last blank of one may be the first of the next.
  for (std::size_t at = 0; (at = words.find(kCut, at)) != std::string::npos; ++at) {
    words.replace(at, kCut.size(), " <unk> ");
  }
  return words;
}

// BLEU as in papers: the words are tokenised first, then compared unchanged.
double paper_score(const Lines& hypotheses, const std::vector<Lines>& references, const BleuOptions& given,
                   bool split_compounds) {
  const auto form = [&](const std::string& line) {
    const std::string words = words_with_unknown(line, given);
    return split_compounds ? data::split_compounds(words) : words;
  };
  const auto forms = [&](const Lines& lines) {
    Lines all;
    for (const std::string& line : lines) all.push_back(form(line));
    return all;
  };
  std::vector<Lines> formed;
  for (const Lines& reference : references) formed.push_back(forms(reference));
  BleuOptions plain;
  plain.words = BleuWords::blanks;
  plain.smoothing = Smoothing::none;
  plain.unknown_never_matches = true;
  return corpus_bleu(forms(hypotheses), formed, plain).score;
}

Bleu score_of(const std::vector<BleuCounts>& segments, const BleuOptions& options) {
  BleuCounts sums(options.max_order);
  for (const BleuCounts& counts : segments) sums.add(counts);
  return bleu_of(sums, options);
}

void add_comparison(Json& scores, const std::vector<BleuCounts>& system, const std::vector<BleuCounts>& baseline,
                    const BleuOptions& options) {
  const BootstrapOptions bootstrap;
  const PairedBootstrap compared = paired_bootstrap(system, baseline, options, bootstrap);
  scores.update({{"baseline_bleu", compared.baseline},
                 {"difference", compared.system - compared.baseline},
                 {"difference_low", compared.low_difference},
                 {"difference_high", compared.high_difference},
                 {"wins", compared.wins},
                 {"p_value", compared.p_value},
                 {"resamples", bootstrap.resamples}});
}

}  // namespace

BleuOptions TaskKeys::options() const {
  BleuOptions options;
  options.words = words;
  options.smoothing = smoothing;
  options.smooth_value = smooth_value;
  options.lower_case = lower_case;
  return options;
}

const FieldList<TaskKeys>& task_fields() {
  static const FieldList<TaskKeys> kFields{
      {"label_smoothing",
       &TaskKeys::label_smoothing,
       "share of the label's probability that is spread evenly over the vocabulary while training",
       {.least = 0, .below = 1}},
      {"bleu_tokenize",
       &TaskKeys::words,
       "BLEU's tokenisation, as sacreBLEU names it",
       {{"13a", BleuWords::rules_13a},
        {"intl", BleuWords::international},
        {"char", BleuWords::characters},
        {"none", BleuWords::blanks}},
       kDecoding},
      {"bleu_smooth",
       &TaskKeys::smoothing,
       "BLEU's smoothing of precisions that are 0",
       {{"exp", Smoothing::exponential},
        {"floor", Smoothing::floor},
        {"add-k", Smoothing::add_k},
        {"none", Smoothing::none}},
       kDecoding},
      {"bleu_smooth_value", &TaskKeys::smooth_value, "value of floor and add-k; 0: 0.1 and 1", {.least = 0}, kDecoding},
      {"bleu_lowercase", &TaskKeys::lower_case, "count BLEU without case", {}, kDecoding},
      {"bleu_paper_forms",
       &TaskKeys::paper_forms,
       "also tokenised and compound-split BLEU, the form of the papers' numbers",
       {},
       kDecoding},
      {"bleu_beam",
       &TaskKeys::bleu_beam,
       "beam of the translations that evaluation makes for BLEU (1: greedy); 0: no BLEU",
       {.least = 0},
       kDecoding},
  };
  return kFields;
}

Json score_files(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold,
                 const ScoreOptions& options) {
  const TaskKeys keys = task_fields().read(options.keys, "etc eval", "task.");
  const BleuOptions counted = keys.options();
  const Lines hypotheses = read_lines(predictions);
  std::vector<Lines> references;
  for (const auto& path : gold) {
    references.push_back(read_lines(path));
    require_equal_lines(predictions, hypotheses, path, references.back());
  }
  if (hypotheses.empty()) fail(predictions.string(), "expected at least one line to score, got none");
  const std::vector<BleuCounts> segments = count_segments(hypotheses, references, counted);
  const Bleu bleu = score_of(segments, counted);
  Json scores = {{"metrics", {{"bleu", bleu.score}}},
                 {"brevity_penalty", bleu.brevity_penalty},
                 {"system_length", bleu.system_length},
                 {"reference_length", bleu.reference_length},
                 {"segments", std::ssize(hypotheses)},
                 {"precisions", bleu.precisions},
                 {"signature", bleu_signature(counted, references.size(), std::string("etc-") + program_version())}};
  if (keys.paper_forms) {
    scores["metrics"]["tokenised"] = paper_score(hypotheses, references, counted, false);
    scores["metrics"]["compound_split"] = paper_score(hypotheses, references, counted, true);
  }
  if (!options.baseline.empty()) {
    const Lines baseline = read_lines(options.baseline);
    require_equal_lines(predictions, hypotheses, options.baseline, baseline);
    add_comparison(scores, segments, count_segments(baseline, references, counted), counted);
  }
  return scores;
}

}  // namespace etc::translation
