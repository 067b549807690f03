#include "data/sample/wikihop_sample.h"

#include <set>

#include "data/sample/story.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::data {

namespace {

constexpr std::int64_t kMaxCandidates = 20;
constexpr const char* kTrainFile = "train";

// Names of one kind; their number grows with the number of candidates. It is small, because a model must learn to
// compare names and learns this faster with fewer names. Pairs hold the values for one hop and for two.
struct Names {
  std::size_t first;             // first index in names(); the kinds do not overlap
  std::size_t per_candidate[2];  // how many times the number of candidates
};
constexpr Names kSubjects{0, {2, 1}}, kRegions{40, {2, 1}}, kAnswers{80, {3, 3}};
constexpr std::size_t kAllNames = 140;

struct Relation {
  const char* query;  // as in the original data set: words joined by underscores
  const char* verb;   // "A <verb> X."
};
constexpr Relation kRelations[] = {
    {"ruler_of", "is ruled by"}, {"founder_of", "was founded by"}, {"painter_of", "was painted by"}};
constexpr const char* kBridge = "belongs to";

// One fact at a random place among filler sentences.
std::string document(const std::string& fact, std::int64_t fillers, Choices& choices) {
  std::vector<std::string> sentences{fact};
  for (std::int64_t i = 0; i < fillers; ++i) sentences.push_back(filler_sentence(choices));
  choices.shuffle(sentences);
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : " ") + sentence;
  return text;
}

// As many names of a kind as there are candidates, in random order; the first one is used by the question.
std::vector<std::string> names_of(const Names& kind, const WikihopSampleOptions& options, bool popular,
                                  Choices& choices) {
  const auto count = static_cast<std::size_t>(options.candidates);
  const std::size_t all = kind.per_candidate[options.hops - 1] * count;
  const std::size_t first = popular ? popular_index(all, choices) : even_index(all, choices);
  return some_of(names(kind.first, all), first, count, choices);
}

// Content of a record: the number of documents "K is ruled by X." and "A belongs to K.", and whether the query names
// the region K itself, which removes the first hop.
struct Plan {
  std::int64_t facts, bridges;
  bool asks_region;
};

// Training records of two hops form a curriculum of four kinds in equal shares: without the first hop; with one bridge,
// the answer's; with some bridges; with all documents, as in the dev file.
Plan plan_of(const WikihopSampleOptions& options, bool training, Choices& choices) {
  const std::int64_t n = options.candidates;
  const std::int64_t facts = training ? 1 + choices.below(n) : n;
  if (options.hops == 1) return {facts, 0, false};
  switch (training ? choices.below(4) : 3) {
    case 0:
      return {facts, choices.below(n + 1), true};
    case 1:
      return {facts, 1, false};
    case 2:
      return {facts, 1 + choices.below(n), false};
    default:
      return {n, n, false};
  }
}

void check(const WikihopSampleOptions& options) {
  const char* where = "etc sample";
  if (options.records < 1) fail_usage(where, "--records: expected at least 1, got {}", options.records);
  if (options.hops != 1 && options.hops != 2) fail_usage(where, "--hops: expected 1 or 2, got {}", options.hops);
  if (options.candidates < 2 || options.candidates > kMaxCandidates) {
    fail_usage(where, "--candidates: expected 2 to {}, got {}", kMaxCandidates, options.candidates);
  }
  const std::int64_t least = options.candidates + 4 + options.candidates * options.hops * kFactTokens;
  if (options.most_tokens() < least) {
    fail_usage(where, "--long-tokens: expected at least {} for {} candidates and {} hops, got {}", least,
               options.candidates, options.hops, options.most_tokens());
  }
}

// Every word the records can hold.
std::set<std::string> all_words() {
  std::set<std::string> plain;
  add_filler_words(plain);
  const auto add_words = [&](const std::string& text) {
    std::string word;
    for (char c : text + " ") {
      if (c == ' ' || c == '_') {
        if (!word.empty()) plain.insert(word);
        word.clear();
      } else {
        word += c;
      }
    }
  };
  for (const Relation& relation : kRelations) add_words(std::string(relation.query) + " " + relation.verb);
  add_words(kBridge);
  for (const std::string& name : names(0, kAllNames)) plain.insert(name);
  return plain;
}

std::string json_array(const WikihopSampleOptions& options, const std::string& file, std::int64_t records,
                       const BeforeRecord& before_record) {
  std::string text = "[";
  for (std::int64_t i = 0; i < records; ++i) {
    before_record();
    const WikihopSampleRecord record = wikihop_sample_record(options, file, i);
    text += (i == 0 ? "" : ", ") + json_line(Json{{"id", record.id},
                                                  {"query", record.query},
                                                  {"answer", record.answer},
                                                  {"candidates", record.candidates},
                                                  {"supports", record.supports}});
  }
  return text + "]\n";
}

}  // namespace

WikihopSampleRecord wikihop_sample_record(const WikihopSampleOptions& options, const std::string& file,
                                          std::int64_t index) {
  Choices choices(options.seed, file, static_cast<std::uint64_t>(index));
  const std::int64_t n = options.candidates;
  const bool training = file == kTrainFile;
  const std::vector<std::string> subjects = names_of(kSubjects, options, training, choices);
  const std::vector<std::string> answers = names_of(kAnswers, options, false, choices);
  const std::vector<std::string> regions = names_of(kRegions, options, training, choices);
  const Relation& relation = kRelations[choices.below(3)];
  const std::int64_t budget = (options.most_tokens() - n - 4) / (n * options.hops);
  const std::int64_t fillers = std::max<std::int64_t>(0, (budget - kFactTokens) / kFillerTokens);

  WikihopSampleRecord record;
  record.id = "WH_" + file + "_" + std::to_string(index);
  const Plan plan = plan_of(options, training, choices);
  const auto add_document = [&](const std::string& holder, const char* verb, const std::string& held) {
    record.supports.push_back(
        document(capitalized(holder) + " " + verb + " " + capitalized(held) + ".", fillers, choices));
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    if (static_cast<std::int64_t>(i) < plan.facts) {
      add_document(options.hops == 1 ? subjects[i] : regions[i], relation.verb, answers[i]);
    }
    if (static_cast<std::int64_t>(i) < plan.bridges) add_document(subjects[i], kBridge, regions[i]);
  }
  choices.shuffle(record.supports);
  // Asking for the first one is no restriction: its name is random, and candidates and documents are shuffled below.
  record.query = std::string(relation.query) + " " + (plan.asks_region ? regions[0] : subjects[0]);
  record.answer = answers[0];
  record.candidates = answers;
  choices.shuffle(record.candidates);
  return record;
}

void write_wikihop_sample(const WikihopSampleOptions& options, const std::filesystem::path& folder,
                          const BeforeRecord& before_record) {
  check(options);
  write_sample_files(folder, all_words(), json_array(options, kTrainFile, options.records, before_record),
                     json_array(options, "dev", std::max<std::int64_t>(1, options.records / 5), before_record));
}

}  // namespace etc::data
