#include "data/sample/openkp_sample.h"

#include <set>

#include "data/sample/story.h"
#include "data/sample/word_source.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"

namespace etc::data {

namespace {

using Words = std::vector<std::string>;

constexpr const char* kTrainFile = "train";
constexpr std::int64_t kMaxTopics = 10;
constexpr std::int64_t kPhrases = 3;        // of a topic
constexpr std::int64_t kLongestPhrase = 2;  // words
constexpr int kPopularity = 2;              // exponent: the j-th topic is asked for with weight 1/j²
constexpr std::size_t kFirstPhraseName = 24, kPhraseNames = 120;

// "T offers p and q and r daily" at most.
constexpr std::int64_t kTopicWords = 1 + 1 + kPhrases * kLongestPhrase + (kPhrases - 1) + 1;
constexpr std::int64_t kHeadingWords = 3;

constexpr std::int64_t kFillerWords = 7;

struct Topic {
  std::string name;
  std::vector<Words> phrases;
};

std::int64_t fillers_of(const OpenkpSampleOptions& options) {
  return (options.long_tokens - kHeadingWords - options.topics * kTopicWords) / kFillerWords;
}

Words filler(Choices& choices) {
  const std::string thing = filler_thing(choices), trait = filler_trait(choices);
  return {"The", thing, "there", "is", "always", "very", trait};
}

Words sentence_of(const Topic& topic) {
  Words words = {capitalized(topic.name), "offers"};
  for (std::size_t p = 0; p < topic.phrases.size(); ++p) {
    if (p > 0) words.emplace_back("and");
    words.insert(words.end(), topic.phrases[p].begin(), topic.phrases[p].end());
  }
  words.emplace_back("daily");
  return words;
}

// Topics with different names and with phrases that share no word; the first one is the heading's.
std::vector<Topic> topics_of(std::int64_t count, bool popular, Choices& choices) {
  const auto listed = static_cast<std::size_t>(count), all = listed + kSpareNames;
  const std::size_t meant = popular ? popular_index(all, choices, kPopularity) : even_index(all, choices);
  const Words topic_names = some_of(names(0, all), meant, listed, choices);
  Words phrase_names = names(kFirstPhraseName, kPhraseNames);
  choices.shuffle(phrase_names);
  std::vector<Topic> topics;
  auto next = phrase_names.begin();
  for (std::int64_t t = 0; t < count; ++t) {
    Topic topic{topic_names[static_cast<std::size_t>(t)], {}};
    for (std::int64_t p = 0; p < kPhrases; ++p) {
      const auto end = next + 1 + choices.below(kLongestPhrase);
      topic.phrases.emplace_back(next, end);
      next = end;
    }
    topics.push_back(std::move(topic));
  }
  return topics;
}

// Layout features of an element and its parent as a browser would report them; all paragraphs share one parent block.
Json looks_of(bool heading, std::int64_t line, Choices& choices) {
  const double y = 80.0 + 24.0 * static_cast<double>(line);
  const double font = heading ? 28.0 : 14.0 + static_cast<double>(choices.below(3));
  const double bold = heading ? 0.0 : static_cast<double>(choices.below(2));
  const double in_heading = heading ? 1.0 : 0.0;
  return {40.0, 600.0,  y,          heading ? 36.0 : 18.0,
          1.0,  0.0,    in_heading, 1.0,
          font, bold,   0.0,        900.0,
          60.0, 2400.0, 1.0,        0.0,
          0.0,  0.0,    16.0,       0.0};
}

class Page {
 public:
  void add(const Words& words, bool heading, Choices& choices) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    const auto end = words_ + static_cast<std::int64_t>(words.size());
    elements_.push_back({{"Id", 0},
                         {"text", text},
                         {"feature", looks_of(heading, static_cast<std::int64_t>(elements_.size()), choices)},
                         {"start_idx", words_},
                         {"end_idx", end}});
    text_ += (text_.empty() ? "" : " ") + text;
    words_ = end;
  }

  Json record(const std::string& url, const std::vector<Words>& key_phrases) const {
    return {{"url", url}, {"text", text_}, {"VDOM", json_line(elements_)}, {"KeyPhrases", key_phrases}};
  }

 private:
  std::string text_;
  Json elements_ = Json::array();
  std::int64_t words_ = 0;
};

void check(const OpenkpSampleOptions& options) {
  const char* where = "etc sample";
  if (options.records < 1) fail_usage(where, "--records: expected at least 1, got {}", options.records);
  if (options.topics < 2 || options.topics > kMaxTopics) {
    fail_usage(where, "--topics: expected 2 to {}, got {}", kMaxTopics, options.topics);
  }
  if (fillers_of(options) * kFillerWords < kOpenkpSampleGap) {
    fail_usage(where, "--long-tokens: expected at least {} for {} topics, got {}",
               kHeadingWords + kOpenkpSampleGap + options.topics * kTopicWords, options.topics, options.long_tokens);
  }
}

// Every word the pages can hold.
std::set<std::string> all_words() {
  std::set<std::string> words = {"guide", "to", "offers", "and", "daily", "always"};
  add_filler_words(words);
  for (const std::string& name : names(0, kFirstPhraseName + kPhraseNames)) words.insert(name);
  return words;
}

std::string json_lines(const OpenkpSampleOptions& options, const std::string& file, std::int64_t records,
                       const BeforeRecord& before_record) {
  std::string text;
  for (std::int64_t i = 0; i < records; ++i) {
    before_record();
    text += json_line(openkp_sample_record(options, file, i)) + "\n";
  }
  return text;
}

}  // namespace

Json openkp_sample_record(const OpenkpSampleOptions& options, const std::string& file, std::int64_t index) {
  Choices choices(options.seed, file, static_cast<std::uint64_t>(index));
  const bool training = file == kTrainFile;
  std::vector<Topic> topics = topics_of(options.topics, training, choices);
  const Topic meant = topics[0];
  if (training) topics.resize(static_cast<std::size_t>(1 + choices.below(options.topics)));
  choices.shuffle(topics);
  Page page;
  page.add({"Guide", "to", capitalized(meant.name)}, true, choices);
  for (std::int64_t i = 0; i < fillers_of(options); ++i) page.add(filler(choices), false, choices);
  for (const Topic& topic : topics) page.add(sentence_of(topic), false, choices);
  return page.record("http://sample.example/" + file + "/" + std::to_string(index), meant.phrases);
}

void write_openkp_sample(const OpenkpSampleOptions& options, const std::filesystem::path& folder,
                         const BeforeRecord& before_record) {
  check(options);
  write_file_atomically(folder / "vocab.txt", bert_vocabulary(all_words()));
  write_file_atomically(folder / "train.jsonl", json_lines(options, kTrainFile, options.records, before_record));
  write_file_atomically(folder / "dev.jsonl",
                        json_lines(options, "dev", std::max<std::int64_t>(1, options.records / 5), before_record));
}

}  // namespace etc::data
