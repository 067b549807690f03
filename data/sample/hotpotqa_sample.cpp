#include "data/sample/hotpotqa_sample.h"

#include <set>

#include "data/sample/story.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::data {

namespace {

constexpr std::int64_t kMaxSubjects = 10;
constexpr const char* kTrainFile = "train";

// Names of one kind; more of them the more subjects there are.
struct Names {
  std::size_t first;        // first index in names(); the kinds do not overlap
  std::size_t per_subject;  // how many times the number of subjects
  std::size_t spare;        // additional names
};
constexpr Names kSubjects{0, 1, kSpareNames}, kRegions{40, 1, kSpareNames}, kAnswers{80, 3, 0};
constexpr std::size_t kAllNames = 140;

constexpr const char* kParticiples[] = {"ruled", "founded", "painted"};  // "A is ruled by X."

constexpr std::int64_t kTitleTokens = 1;
constexpr std::int64_t kQuestionTokens = 7;  // upper bound, with CLS

// As many names of a kind as there are subjects, in random order; the first one is used by the question.
std::vector<std::string> names_of(const Names& kind, std::int64_t subjects, bool popular, Choices& choices) {
  const auto count = static_cast<std::size_t>(subjects);
  const std::size_t all = kind.per_subject * count + kind.spare;
  const std::size_t first = popular ? popular_index(all, choices) : even_index(all, choices);
  std::vector<std::string> words = some_of(names(kind.first, all), first, count, choices);
  for (std::string& word : words) word = capitalized(word);
  return words;
}

std::int64_t paragraphs_of(const HotpotqaSampleOptions& options) {
  return options.subjects * options.hops;
}

std::int64_t fillers_of(const HotpotqaSampleOptions& options) {
  const std::int64_t paragraph = (options.most_tokens() - kQuestionTokens) / paragraphs_of(options);
  return std::max<std::int64_t>(0, (paragraph - kTitleTokens - kFactTokens) / kFillerTokens);
}

// A paragraph under construction; returns the number of the sentence that holds the fact.
std::int64_t add_paragraph(HotpotqaSampleRecord& record, const std::string& title, const std::string& fact,
                           std::int64_t fillers, Choices& choices) {
  const std::int64_t place = choices.below(fillers + 1);
  std::vector<std::string> sentences;
  for (std::int64_t s = 0; s <= fillers; ++s) {
    const std::string blank = s == 0 ? "" : " ";  // as in the original data set
    sentences.push_back(blank + (s == place ? fact : filler_sentence(choices)));
  }
  record.context.emplace_back(title, std::move(sentences));
  return place;
}

void check(const HotpotqaSampleOptions& options) {
  const char* where = "etc sample";
  if (options.records < 1) fail_usage(where, "--records: expected at least 1, got {}", options.records);
  if (options.hops != 1 && options.hops != 2) fail_usage(where, "--hops: expected 1 or 2, got {}", options.hops);
  if (options.subjects < 2 || options.subjects > kMaxSubjects) {
    fail_usage(where, "--subjects: expected 2 to {}, got {}", kMaxSubjects, options.subjects);
  }
  if (options.yes_no < 0 || options.yes_no > 10) {
    fail_usage(where, "--yes-no: expected 0 to 10, got {}", options.yes_no);
  }
  const std::int64_t least = kQuestionTokens + paragraphs_of(options) * (kTitleTokens + kFactTokens);
  if (options.most_tokens() < least) {
    fail_usage(where, "--long-tokens: expected at least {} for {} subjects and {} hops, got {}", least,
               options.subjects, options.hops, options.most_tokens());
  }
}

// Every word the records can hold.
std::set<std::string> all_words() {
  std::set<std::string> words{"who", "is", "by", "belongs", "to", "?"};
  add_filler_words(words);
  words.insert(std::begin(kParticiples), std::end(kParticiples));
  for (const std::string& name : names(0, kAllNames)) words.insert(name);
  return words;
}

std::string json_array(const HotpotqaSampleOptions& options, const std::string& file, std::int64_t records,
                       const BeforeRecord& before_record) {
  std::string text = "[";
  for (std::int64_t i = 0; i < records; ++i) {
    before_record();
    const HotpotqaSampleRecord record = hotpotqa_sample_record(options, file, i);
    Json context = Json::array(), facts = Json::array();
    for (const auto& [title, sentences] : record.context) context.push_back({title, sentences});
    for (const auto& [title, sentence] : record.supporting_facts) facts.push_back({title, sentence});
    text += (i == 0 ? "" : ", ") + json_line(Json{{"_id", record.id},
                                                  {"question", record.question},
                                                  {"answer", record.answer},
                                                  {"type", record.type},
                                                  {"level", "hard"},
                                                  {"supporting_facts", facts},
                                                  {"context", context}});
  }
  return text + "]\n";
}

}  // namespace

HotpotqaSampleRecord hotpotqa_sample_record(const HotpotqaSampleOptions& options, const std::string& file,
                                            std::int64_t index) {
  Choices choices(options.seed, "hotpotqa " + file, static_cast<std::uint64_t>(index));
  const bool training = file == kTrainFile;
  const std::int64_t n = options.subjects;
  const std::vector<std::string> subjects = names_of(kSubjects, n, training, choices);
  const std::vector<std::string> answers = names_of(kAnswers, n, false, choices);
  const std::vector<std::string> regions = names_of(kRegions, n, training, choices);
  const std::string participle = kParticiples[choices.below(std::ssize(kParticiples))];
  const bool asks_yes_no = choices.below(10) < options.yes_no;
  const bool is_yes = choices.below(2) == 0;
  const std::int64_t fillers = fillers_of(options);

  HotpotqaSampleRecord record;
  record.id = "hotpot_" + file + "_" + std::to_string(index);
  // Number of paragraphs of each kind. The answer "no" needs the name in the second paragraph.
  const auto some = [&](std::int64_t least) { return training ? least + choices.below(n - least + 1) : n; };
  const std::int64_t facts = some(asks_yes_no ? 2 : 1), bridges = options.hops == 2 ? some(1) : 0;
  // The first subject is the one asked for; the shuffle below removes this order.
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    if (number < facts) {
      const std::string& holder = options.hops == 1 ? subjects[i] : regions[i];
      const std::string fact = holder + " is " + participle + " by " + answers[i] + ".";
      const std::int64_t place = add_paragraph(record, holder, fact, fillers, choices);
      if (i == 0) record.supporting_facts.emplace_back(holder, place);
    }
    if (number < bridges) {
      const std::string bridge = subjects[i] + " belongs to " + regions[i] + ".";
      const std::int64_t place = add_paragraph(record, subjects[i], bridge, fillers, choices);
      if (i == 0) record.supporting_facts.emplace_back(subjects[i], place);
    }
  }
  choices.shuffle(record.context);
  record.type = asks_yes_no ? "comparison" : "bridge";
  if (asks_yes_no) {
    record.question = "Is " + subjects[0] + " " + participle + " by " + answers[is_yes ? 0 : 1] + "?";
    record.answer = is_yes ? "yes" : "no";
  } else {
    record.question = "Who " + participle + " " + subjects[0] + "?";
    record.answer = answers[0];
  }
  return record;
}

void write_hotpotqa_sample(const HotpotqaSampleOptions& options, const std::filesystem::path& folder,
                           const BeforeRecord& before_record) {
  check(options);
  write_sample_files(folder, all_words(), json_array(options, kTrainFile, options.records, before_record),
                     json_array(options, "dev", std::max<std::int64_t>(1, options.records / 5), before_record));
}

}  // namespace etc::data
