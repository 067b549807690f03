#include "tasks/translation/line_sources.h"

#include <algorithm>

#include "data/text/unicode.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"

namespace etc::translation {

namespace {

// Larger penalties make no sense, and scores of long translations would become 0 or infinite.
constexpr double kMostPenalty = 10, kMostUnknown = 1000;

}  // namespace

const FieldList<TranslatorOptions>& translator_options() {
  using O = TranslatorOptions;
  static const FieldList<O> kFields{
      {"beam", &O::beam, "hypotheses of the beam search; 1: greedy", {.least = 1}},
      {"length_penalty",
       &O::length_penalty,
       "scores are divided by length^this: 0 the sum, 1 the mean of log-probabilities",
       {.least = -kMostPenalty, .most = kMostPenalty}},
      {"unknown_penalty",
       &O::unknown_penalty,
       "subtracted from the log-probability of <unk>",
       {.least = -kMostUnknown, .most = kMostUnknown}},
      {"max_len_a",
       &O::max_len_a,
       "a translation has at most this times the source's pieces plus --max-len-b",
       {.least = 0}},
      {"max_len_b", &O::max_len_b, "pieces added to that limit", {.least = 1}},
      {"min_len", &O::min_len, "fewest pieces of a translation", {.least = 0}},
      {"positions", &O::limit, "most pieces of a sentence with </s>", {.least = 2}},
      {"batch_tokens", &O::batch_tokens, "source pieces that are searched together", {.least = 1}},
      {"truncate_source", &O::truncate_source, "truncate longer lines instead of refusing them"},
  };
  return kFields;
}

TranslatorOptions read_translator_options(const Json& given) {
  constexpr const char* kWhere = "etc translate";
  TranslatorOptions options = translator_options().read(given, kWhere, "--");
  // With --max-len-a the maximum length depends on the line.
  const bool fixed = options.max_len_a == 0 && options.max_len_b < options.limit;
  const std::int64_t most = fixed ? options.max_len_b : options.limit - 1;
  if (options.min_len > most) {
    fail_usage(kWhere, "--min-len: expected at most {}, as long as {} lets a translation be, got {}", most,
               fixed ? "--max-len-b" : "--positions", options.min_len);
  }
  return options;
}

std::vector<std::int32_t> LineSources::prefix_of(const SourceLine& line, std::int64_t number, std::int64_t most) const {
  if (data::invalid_utf8(line.prefix)) fail("translate", "line {}: its prefix is not UTF-8", number);
  std::vector<std::int32_t> ids = tokenizer_->encode_ids(line.prefix);
  if (std::ssize(ids) > most) {
    fail("translate", "line {}: its prefix: expected at most the {} pieces of a translation, got {}", number, most,
         ids.size());
  }
  for (const std::int32_t id : ids) {
    if (id == options_.tokens.pad || id == options_.tokens.end)
      fail("translate", "line {}: its prefix has a special piece", number);
  }
  return ids;
}

TranslationSource LineSources::source_of(const SourceLine& line, std::int64_t number) {
  if (data::invalid_utf8(line.text)) {
    log::warn("line {}: not UTF-8, its translation is an empty line", number);
    return {};
  }
  TranslationSource source{tokenizer_->encode_ids(line.text), {}, fmt::format("line {}", number)};
  if (source.ids.empty()) return source;
  pieces_ += std::ssize(source.ids);
  unknown_ += std::count(source.ids.begin(), source.ids.end(), options_.tokens.unknown);
  const std::int64_t most = options_.limit - 1;  // beside </s>
  if (std::ssize(source.ids) > most) {
    if (!options_.truncate_source) {
      fail("translate", "{}: expected at most {} pieces, got {} (--truncate-source cuts such lines)", source.name, most,
           source.ids.size());
    }
    source.ids.resize(static_cast<std::size_t>(most));
  }
  source.ids.push_back(options_.tokens.end);
  source.prefix = prefix_of(line, number, longest_translation(options_, std::ssize(source.ids)));
  return source;
}

std::vector<TranslationSource> LineSources::read(std::span<const SourceLine> lines, std::int64_t first_line) {
  std::vector<TranslationSource> sources;
  for (const SourceLine& line : lines) sources.push_back(source_of(line, first_line + std::ssize(sources)));
  return sources;
}

}  // namespace etc::translation
