#include "data/sample/squad_sample.h"

#include <algorithm>
#include <set>

#include "data/sample/story.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::data {

namespace {

constexpr std::int64_t kMaxSubjects = 10;
constexpr std::int64_t kParagraphsPerArticle = 50;
constexpr std::size_t kFirstAnswer = 40, kAnswers = 40;  // indices in names()
constexpr const char* kTrainFile = "train";
constexpr const char* kParticiples[] = {"ruled", "founded", "painted"};

void check(const SquadSampleOptions& options) {
  const char* where = "etc sample";
  if (options.records < 1) fail_usage(where, "--records: expected at least 1, got {}", options.records);
  if (options.subjects < 2 || options.subjects > kMaxSubjects) {
    fail_usage(where, "--subjects: expected 2 to {}, got {}", kMaxSubjects, options.subjects);
  }
  if (options.impossible < 0 || options.impossible > 10) {
    fail_usage(where, "--impossible: expected 0 to 10, got {}", options.impossible);
  }
}

std::set<std::string> all_words() {
  std::set<std::string> words{"who", "is", "by", "?"};
  add_filler_words(words);
  words.insert(std::begin(kParticiples), std::end(kParticiples));
  for (const std::string& name : names(0, kFirstAnswer + kAnswers)) words.insert(name);
  return words;
}

std::string file_text(const SquadSampleOptions& options, const std::string& file, std::int64_t records,
                      const BeforeRecord& before_record) {
  Json articles = Json::array();
  for (std::int64_t i = 0; i < records; ++i) {
    before_record();
    if (i % kParagraphsPerArticle == 0) {
      articles.push_back({{"title", fmt::format("{} {}", file, articles.size() + 1)}, {"paragraphs", Json::array()}});
    }
    articles.back()["paragraphs"].push_back(squad_sample_paragraph(options, file, i));
  }
  return json_line(Json{{"version", options.impossible > 0 ? "v2.0" : "1.1"}, {"data", articles}}) + "\n";
}

}  // namespace

Json squad_sample_paragraph(const SquadSampleOptions& options, const std::string& file, std::int64_t index) {
  Choices choices(options.seed, "squad " + file, static_cast<std::uint64_t>(index));
  const bool training = file == kTrainFile;
  const auto all = static_cast<std::size_t>(options.subjects) + 1 + kSpareNames;
  const std::size_t asked = training ? popular_index(all, choices) : even_index(all, choices);
  const bool impossible = choices.below(10) < options.impossible;
  const std::int64_t told = training ? 1 + choices.below(options.subjects) : options.subjects;
  // The subject asked for comes first; an impossible question's text leaves it out.
  std::vector<std::string> subjects = some_of(names(0, all), asked, static_cast<std::size_t>(told) + 1, choices);
  const std::string subject = capitalized(subjects.front());
  if (impossible) {
    subjects.erase(subjects.begin());
  } else {
    subjects.pop_back();
  }
  const std::vector<std::string> answers =
      some_of(names(kFirstAnswer, kAnswers), even_index(kAnswers, choices), subjects.size(), choices);
  const std::string participle = kParticiples[choices.below(std::ssize(kParticiples))];
  std::vector<std::string> sentences;
  for (std::size_t s = 0; s < subjects.size(); ++s) {
    sentences.push_back(fmt::format("{} is {} by {}.", capitalized(subjects[s]), participle, capitalized(answers[s])));
  }
  sentences.push_back(filler_sentence(choices));
  const std::string fact = sentences.front(), answer = capitalized(answers.front());
  choices.shuffle(sentences);
  const std::string context = fmt::format("{}", fmt::join(sentences, " "));
  Json found = Json::array();
  if (!impossible) {
    const std::size_t at = context.find(fact) + fact.size() - answer.size() - 1;
    found.push_back({{"text", answer}, {"answer_start", at}});
  }
  Json question = {{"id", fmt::format("squad_{}_{}", file, index)},
                   {"question", fmt::format("Who {} {}?", participle, subject)},
                   {"answers", found}};
  if (options.impossible > 0) question["is_impossible"] = impossible;
  return {{"context", context}, {"qas", Json::array({question})}};
}

void write_squad_sample(const SquadSampleOptions& options, const std::filesystem::path& folder,
                        const BeforeRecord& before_record) {
  check(options);
  write_sample_files(folder, all_words(), file_text(options, kTrainFile, options.records, before_record),
                     file_text(options, "dev", std::max<std::int64_t>(1, options.records / 5), before_record));
}

}  // namespace etc::data
