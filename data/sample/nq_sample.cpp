#include "data/sample/nq_sample.h"

#include <set>
#include <string>
#include <vector>

#include "data/sample/story.h"
#include "data/sample/word_source.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"

namespace etc::data {

namespace {

using Words = std::vector<std::string>;

constexpr std::int64_t kMaxCandidates = 20;
constexpr std::size_t kDevAnnotations = 5;
constexpr const char* kTrainFile = "train";

// Index in names() where each kind of names begins.
constexpr std::size_t kSubjects = 0;
constexpr std::size_t kAnswers = 80, kAnswersPerCandidate = 3;
constexpr std::size_t kAllNames = 140;

const std::vector<Words> kVerbs = {{"is", "ruled", "by"}, {"was", "founded", "by"}, {"was", "painted", "by"}};

constexpr std::int64_t kFactTokens = 8;                                   // "A is ruled by X and Y ."
constexpr std::int64_t kFillerTokens = 7;                                 // "The mill there is very old ."
constexpr std::int64_t kIntroFillers = 4;                                 // beyond the reach of 3 layers of radius 8
constexpr std::int64_t kIntroTokens = kIntroFillers * kFillerTokens + 5;  // including tags and heading

// Tokens of the largest block, a table with one row or two.
constexpr std::int64_t block_tokens(std::int64_t fillers) {
  return (fillers == 0 ? 6 : 10) + kFactTokens + fillers * kFillerTokens;
}

// Document tokens [start, end).
struct TokenSpan {
  std::int64_t start = -1, end = -1;
};

// A page under construction: tokens with their places in the HTML text, and the candidates.
class Page {
 public:
  std::int64_t size() const { return std::ssize(tokens_); }

  void add(const std::string& text, bool html) {
    if (!html && !html_.ends_with('>')) html_ += ' ';
    const std::size_t begin = html_.size();
    html_ += text;
    tokens_.push_back({{"token", text}, {"start_byte", begin}, {"end_byte", html_.size()}, {"html_token", html}});
  }
  void open(const char* name) { add(std::string("<") + name + ">", true); }
  void close(const char* name) { add(std::string("</") + name + ">", true); }
  void words(const Words& words) {
    for (const std::string& word : words) add(word, false);
  }

  void candidate(const TokenSpan& span, bool top_level) {
    Json entry = json_of(span);
    entry["top_level"] = top_level;
    candidates_.push_back(std::move(entry));
  }
  std::int64_t candidates() const { return std::ssize(candidates_); }

  Json json_of(const TokenSpan& span) const {
    if (span.start < 0) return {{"start_token", -1}, {"end_token", -1}, {"start_byte", -1}, {"end_byte", -1}};
    return {{"start_token", span.start},
            {"end_token", span.end},
            {"start_byte", tokens_[static_cast<std::size_t>(span.start)]["start_byte"]},
            {"end_byte", tokens_[static_cast<std::size_t>(span.end - 1)]["end_byte"]}};
  }

  void put_into(Json& record) {
    record["document_html"] = html_ + "</body></html>";
    record["document_tokens"] = std::move(tokens_);
    record["long_answer_candidates"] = std::move(candidates_);
  }

 private:
  std::string html_ = "<html><body>";
  Json tokens_ = Json::array(), candidates_ = Json::array();
};

// The statement of a block: "subject verb answer and answer …".
struct Fact {
  std::string subject;
  std::size_t verb = 0;
  Words answers;
};

// A block's place on the page, and its answers.
struct Block {
  TokenSpan all;
  std::vector<TokenSpan> answers;
  std::int64_t candidate = 0;  // its index among all candidates
};

void add_filler(Page& page, Choices& choices) {
  const std::string thing = filler_thing(choices), trait = filler_trait(choices);
  page.words({"The", thing, "there", "is", "very", trait, "."});
}

void add_introduction(Page& page, Choices& choices) {
  const std::int64_t start = page.size();
  page.open("P");
  for (std::int64_t i = 0; i < kIntroFillers; ++i) add_filler(page, choices);
  page.close("P");
  page.candidate({start, page.size()}, true);
}

std::vector<TokenSpan> add_fact(Page& page, const Fact& fact) {
  page.words({capitalized(fact.subject)});
  page.words(kVerbs[fact.verb]);
  std::vector<TokenSpan> answers;
  for (const std::string& answer : fact.answers) {
    if (!answers.empty()) page.words({"and"});
    answers.push_back({page.size(), page.size() + 1});
    page.words({capitalized(answer)});
  }
  page.words({"."});
  return answers;
}

// A fact among filler sentences: a paragraph, a list of items, or a table of rows. Items and rows are nested
// candidates.
Block add_block(Page& page, const Fact& fact, std::int64_t fillers, Choices& choices) {
  struct Shape {
    const char *whole, *part, *cell;  // null: none
  };
  constexpr Shape kShapes[] = {
      {"P", nullptr, nullptr}, {"P", nullptr, nullptr}, {"Ul", "Li", nullptr}, {"Table", "Tr", "Td"}};
  const Shape& shape = kShapes[choices.below(4)];
  const std::int64_t sentences = fillers + 1, place = choices.below(sentences);
  // A part holds one sentence; with more than two sentences the last part holds the rest.
  const std::int64_t parts = shape.part == nullptr ? 1 : std::min<std::int64_t>(sentences, 2);
  Block block;
  block.candidate = page.candidates();
  block.all.start = page.size();
  std::vector<TokenSpan> inner;
  page.open(shape.whole);
  for (std::int64_t part = 0, sentence = 0; part < parts; ++part) {
    const std::int64_t begin = page.size();
    if (shape.part != nullptr) page.open(shape.part);
    if (shape.cell != nullptr) page.open(shape.cell);
    for (const std::int64_t end = part + 1 < parts ? sentence + 1 : sentences; sentence < end; ++sentence) {
      if (sentence == place) {
        block.answers = add_fact(page, fact);
      } else {
        add_filler(page, choices);
      }
    }
    if (shape.cell != nullptr) page.close(shape.cell);
    if (shape.part != nullptr) page.close(shape.part);
    if (shape.part != nullptr) inner.push_back({begin, page.size()});
  }
  page.close(shape.whole);
  block.all.end = page.size();
  page.candidate(block.all, true);
  for (const TokenSpan& span : inner) page.candidate(span, false);
  return block;
}

enum class Kind { one_short, two_short, long_only, none, yes, no };

Kind kind_of(const NqSampleOptions& options, Choices& choices) {
  const bool mixed = choices.below(10) < options.mixed;
  switch (mixed ? choices.below(4) : -1) {
    case 0:
      return Kind::two_short;
    case 1:
      return Kind::long_only;
    case 2:
      return Kind::none;
    case 3:
      return choices.below(2) == 0 ? Kind::yes : Kind::no;
    default:
      return Kind::one_short;
  }
}

// fact: the one asked for; stranger and other: a subject and an answer of other facts.
std::string question_of(Kind kind, const Fact& fact, const std::string& stranger, const std::string& other) {
  const Words& verb = kVerbs[fact.verb];
  const std::string words = verb[0] + " " + verb[1] + " " + verb[2];
  switch (kind) {
    case Kind::one_short:
      return fact.subject + " " + words + " who";
    case Kind::two_short:
      return fact.subject + " " + words + " who and who";
    case Kind::long_only:
      return "what is said of " + fact.subject;
    case Kind::none:
      return stranger + " " + words + " who";
    case Kind::yes:
      return verb[0] + " " + fact.subject + " " + verb[1] + " by " + fact.answers[0];
    case Kind::no:
      return verb[0] + " " + fact.subject + " " + verb[1] + " by " + other;
  }
  return "";
}

Json annotation_of(Kind kind, const Page& page, const Block& block) {
  const bool none = kind == Kind::none;
  Json long_answer = page.json_of(none ? TokenSpan{} : block.all);
  long_answer["candidate_index"] = none ? -1 : block.candidate;
  Json shorts = Json::array();
  if (kind == Kind::one_short || kind == Kind::two_short) {
    for (const TokenSpan& answer : block.answers) shorts.push_back(page.json_of(answer));
  }
  return {{"long_answer", std::move(long_answer)},
          {"short_answers", std::move(shorts)},
          {"yes_no_answer", kind == Kind::yes  ? "YES"
                            : kind == Kind::no ? "NO"
                                               : "NONE"}};
}

// Filler sentences per block.
std::int64_t fillers_of(const NqSampleOptions& options) {
  const std::int64_t budget = (options.long_tokens - kIntroTokens) / options.candidates;
  std::int64_t fillers = 0;
  while (block_tokens(fillers + 1) <= budget) ++fillers;
  return fillers;
}

void check(const NqSampleOptions& options) {
  const char* where = "etc sample";
  if (options.records < 1) fail_usage(where, "--records: expected at least 1, got {}", options.records);
  if (options.candidates < 2 || options.candidates > kMaxCandidates) {
    fail_usage(where, "--candidates: expected 2 to {}, got {}", kMaxCandidates, options.candidates);
  }
  if (options.mixed < 0 || options.mixed > 10) {
    fail_usage(where, "--mixed: expected 0 to 10, got {}", options.mixed);
  }
  const std::int64_t least = kIntroTokens + options.candidates * block_tokens(0);
  if (options.long_tokens < least) {
    fail_usage(where, "--long-tokens: expected at least {} for {} candidates, got {}", least, options.candidates,
               options.long_tokens);
  }
}

// Every word the records can hold, and the pieces that stand for HTML tags.
std::set<std::string> all_words() {
  std::set<std::string> words{"who", "and", "what", "said", "of", "[unused102]", "[unused103]"};
  add_filler_words(words);
  for (const Words& verb : kVerbs) words.insert(verb.begin(), verb.end());
  for (const std::string& name : names(0, kAllNames)) words.insert(name);
  return words;
}

void write_records(const NqSampleOptions& options, const std::string& name, std::int64_t records,
                   const std::filesystem::path& folder, const BeforeRecord& before_record) {
  AtomicFile file(folder / (name + ".jsonl"));
  for (std::int64_t i = 0; i < records; ++i) {
    before_record();
    file.write(json_line(nq_sample_record(options, name, i)) + "\n");
  }
  file.commit();
}

}  // namespace

Json nq_sample_record(const NqSampleOptions& options, const std::string& file, std::int64_t index) {
  Choices choices(options.seed, file, static_cast<std::uint64_t>(index));
  const bool training = file == kTrainFile;
  const auto n = static_cast<std::size_t>(options.candidates);
  Words subjects = names(kSubjects, n + kSpareNames);
  const std::string subject =
      subjects[training ? popular_index(subjects.size(), choices) : even_index(subjects.size(), choices)];
  std::erase(subjects, subject);
  choices.shuffle(subjects);
  Words answers = names(kAnswers, kAnswersPerCandidate * n);
  choices.shuffle(answers);
  const auto verb = static_cast<std::size_t>(choices.below(std::ssize(kVerbs)));
  const Kind kind = kind_of(options, choices);
  const std::int64_t blocks = training ? 1 + choices.below(options.candidates) : options.candidates;
  const std::int64_t place = choices.below(blocks);  // of the block asked for

  Page page;
  page.open("H1");
  page.words({"Atlas"});
  page.close("H1");
  add_introduction(page, choices);
  const auto fact_of = [&](const std::string& about, std::size_t i) {
    Fact fact{about, verb, {answers[i]}};
    if (kind == Kind::two_short) fact.answers.push_back(answers[n + 1 + i]);
    return fact;
  };
  const Fact asked = fact_of(subject, 0);
  Block found;
  for (std::int64_t b = 0; b < blocks; ++b) {
    const auto i = static_cast<std::size_t>(b) + 1;  // 0 is the question's subject
    const Fact fact = b == place ? asked : fact_of(subjects[i], i);
    const Block block = add_block(page, fact, fillers_of(options), choices);
    if (b == place) found = block;
  }
  // The wrong answer in a question is another block's answer, if there is one.
  const std::string& other = blocks == 1 ? answers.back() : answers[place == 0 ? 2 : 1];
  const std::string question = question_of(kind, asked, subjects[0], other);
  Json annotations = Json::array();
  for (std::size_t a = 0; a < (training ? 1 : kDevAnnotations); ++a) {
    annotations.push_back(annotation_of(kind, page, found));
    annotations.back()["annotation_id"] = static_cast<std::int64_t>(a) + 1;
  }
  Json record = {{"example_id", index + (training ? 1 : 1000000000)},
                 {"question_text", question},
                 {"document_title", "Atlas"},
                 {"document_url", "https://synthetic.example/" + file + "/" + std::to_string(index)},
                 {"annotations", std::move(annotations)}};
  page.put_into(record);
  return record;
}

void write_nq_sample(const NqSampleOptions& options, const std::filesystem::path& folder,
                     const BeforeRecord& before_record) {
  check(options);
  write_file_atomically(folder / "vocab.txt", bert_vocabulary(all_words()));
  write_records(options, kTrainFile, options.records, folder, before_record);
  write_records(options, "dev", std::max<std::int64_t>(1, options.records / 5), folder, before_record);
}

}  // namespace etc::data
