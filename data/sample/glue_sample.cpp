#include "data/sample/glue_sample.h"

#include <algorithm>
#include <set>
#include <vector>

#include "data/sample/story.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

constexpr std::int64_t kMaxSubjects = 6;
constexpr std::size_t kFirstRuler = 12, kRulers = 12;  // in the list of names()
constexpr const char* kTrainFile = "train";

std::string fact(const std::string& subject, const std::string& ruler) {
  return capitalized(subject) + " is ruled by " + capitalized(ruler) + ".";
}

std::string file_text(const GlueSampleOptions& options, const std::string& file, std::int64_t records) {
  std::string text = "index\tsentence1\tsentence2\tlabel\n";
  for (std::int64_t i = 0; i < records; ++i) text += glue_sample_row(options, file, i) + "\n";
  return text;
}

}  // namespace

std::string glue_sample_row(const GlueSampleOptions& options, const std::string& file, std::int64_t index) {
  Choices choices(options.seed, "glue " + file, static_cast<std::uint64_t>(index));
  const std::int64_t told = file == kTrainFile ? 1 + choices.below(options.subjects) : options.subjects;
  const auto count = static_cast<std::size_t>(told);
  std::vector<std::string> subjects = names(0, kFirstRuler), rulers = names(kFirstRuler, kRulers);
  choices.shuffle(subjects);
  choices.shuffle(rulers);
  std::vector<std::string> facts;
  for (std::size_t s = 0; s < count; ++s) facts.push_back(fact(subjects[s], rulers[s]));
  const bool entailed = choices.below(2) == 0;
  // rulers[1] rules another subject, or nobody where there is one subject.
  const std::string claim = fact(subjects[0], rulers[entailed ? 0 : 1]);
  choices.shuffle(facts);
  return fmt::format("{}\t{}\t{}\t{}", index, fmt::join(facts, " "), claim, entailed ? "entailment" : "not_entailment");
}

void write_glue_sample(const GlueSampleOptions& options, const std::filesystem::path& folder) {
  const char* where = "etc sample";
  if (options.records < 1) fail_usage(where, "--records: expected at least 1, got {}", options.records);
  if (options.subjects < 1 || options.subjects > kMaxSubjects) {
    fail_usage(where, "--subjects: expected 1 to {}, got {}", kMaxSubjects, options.subjects);
  }
  std::set<std::string> words{"is", "ruled", "by"};
  for (const std::string& name : names(0, kFirstRuler + kRulers)) words.insert(name);
  write_file_atomically(folder / "vocab.txt", bert_vocabulary(words));
  write_file_atomically(folder / "train.tsv", file_text(options, kTrainFile, options.records));
  write_file_atomically(folder / "dev.tsv", file_text(options, "dev", std::max<std::int64_t>(1, options.records / 5)));
}

}  // namespace etc::data
