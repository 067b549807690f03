#include "data/sample/glue_sample.h"

#include <algorithm>
#include <set>
#include <vector>

#include "data/sample/story.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

constexpr std::int64_t kMaxClauses = 6;
constexpr std::int64_t kOneIn = 4;  // one clause in kOneIn has a "not"
constexpr const char* kTrainFile = "train";
constexpr const char* kGood[] = {"bright", "famous", "green", "quiet"};
constexpr const char* kBad[] = {"busy", "narrow", "old", "stony"};

// "the mill there is not bright"
std::string clause(bool praises, Choices& choices) {
  const bool negated = choices.below(kOneIn) == 0;
  const std::string thing = filler_thing(choices);
  const auto word = choices.below(std::ssize(kGood));
  const char* trait = praises != negated ? kGood[word] : kBad[word];
  return fmt::format("the {} there is {} {}", thing, negated ? "not" : "very", trait);
}

std::string file_text(const GlueSampleOptions& options, const std::string& file, std::int64_t records,
                      const BeforeRecord& before_record) {
  std::string text = "sentence\tlabel\n";
  for (std::int64_t i = 0; i < records; ++i) {
    before_record();
    text += glue_sample_row(options, file, i) + "\n";
  }
  return text;
}

}  // namespace

std::string glue_sample_row(const GlueSampleOptions& options, const std::string& file, std::int64_t index) {
  Choices choices(options.seed, "glue " + file, static_cast<std::uint64_t>(index));
  const std::int64_t count = 1 + choices.below(options.clauses);
  std::vector<std::string> clauses;
  bool praises = false;
  for (std::int64_t c = 0; c < count; ++c) {
    praises = choices.below(2) == 1;
    clauses.push_back(clause(praises, choices));
  }
  return fmt::format("{} .\t{}", fmt::join(clauses, " but "), praises ? 1 : 0);
}

void write_glue_sample(const GlueSampleOptions& options, const std::filesystem::path& folder,
                       const BeforeRecord& before_record) {
  const char* where = "etc sample";
  if (options.records < 1) fail_usage(where, "--records: expected at least 1, got {}", options.records);
  if (options.clauses < 1 || options.clauses > kMaxClauses) {
    fail_usage(where, "--clauses: expected 1 to {}, got {}", kMaxClauses, options.clauses);
  }
  std::set<std::string> words{"not", "but"};
  add_filler_words(words);
  words.insert(std::begin(kGood), std::end(kGood));
  words.insert(std::begin(kBad), std::end(kBad));
  write_file_atomically(folder / "vocab.txt", bert_vocabulary(words));
  write_file_atomically(folder / "train.tsv", file_text(options, kTrainFile, options.records, before_record));
  write_file_atomically(folder / "dev.tsv",
                        file_text(options, "dev", std::max<std::int64_t>(1, options.records / 5), before_record));
}

}  // namespace etc::data
