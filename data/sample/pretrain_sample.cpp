#include "data/sample/pretrain_sample.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "data/sample/word_source.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"

namespace etc::data {

namespace {

using Words = std::vector<std::string>;

constexpr std::int64_t kMostPeople = 6, kFactsOfPerson = 2, kSaid = 2;
constexpr std::size_t kPeople = 0, kTowns = 72, kNames = 36;  // first indices in names(), and the count

const Words kColours = {"green", "red", "blue", "white", "black", "golden", "brown", "grey"};

// A person's actions and their objects, in a fixed order.
struct Topic {
  const char* who;
  std::vector<std::pair<const char*, const char*>> deeds;
};
const std::vector<Topic> kTopics = {
    {"baker",
     {{"wakes", "village"},
      {"opens", "oven"},
      {"weighs", "flour"},
      {"kneads", "dough"},
      {"salts", "crust"},
      {"turns", "loaf"},
      {"counts", "rolls"},
      {"sweeps", "shop"}}},
    {"sailor",
     {{"reads", "tide"},
      {"hoists", "sail"},
      {"hauls", "anchor"},
      {"steers", "boat"},
      {"mends", "net"},
      {"watches", "gull"},
      {"rounds", "cape"},
      {"moors", "ship"}}},
    {"smith",
     {{"lights", "forge"},
      {"heats", "iron"},
      {"lifts", "hammer"},
      {"strikes", "anvil"},
      {"bends", "rod"},
      {"cools", "blade"},
      {"files", "edge"},
      {"hangs", "horseshoe"}}},
    {"gardener",
     {{"rakes", "leaves"},
      {"digs", "bed"},
      {"sows", "seed"},
      {"waters", "roots"},
      {"prunes", "hedge"},
      {"picks", "plum"},
      {"ties", "vine"},
      {"shuts", "gate"}}},
    {"teacher",
     {{"rings", "bell"},
      {"cleans", "board"},
      {"spells", "word"},
      {"explains", "map"},
      {"marks", "page"},
      {"praises", "pupil"},
      {"reads", "fable"},
      {"locks", "school"}}},
};

struct Person {
  std::string name, home, colour;
};

std::vector<Person> some_people(std::int64_t count, Choices& choices) {
  Words people = names(kPeople, kNames), towns = names(kTowns, kNames), colours = kColours;
  choices.shuffle(people);
  choices.shuffle(towns);
  choices.shuffle(colours);
  std::vector<Person> chosen;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    chosen.push_back({capitalized(people[i]), capitalized(towns[i]), colours[i]});
  }
  return chosen;
}

void check(const PretrainSampleOptions& options) {
  const char* where = "etc sample";
  if (options.records < 1) fail_usage(where, "--records: expected at least 1, got {}", options.records);
  if (options.people < 1 || options.people > kMostPeople) {
    fail_usage(where, "--people: expected 1 to {}, got {}", kMostPeople, options.people);
  }
  const std::int64_t least = options.people * kFactsOfPerson * kSaid + 1;
  if (options.sentences < least) {
    fail_usage(where, "--sentences: expected at least {} for {} people, got {}", least, options.people,
               options.sentences);
  }
}

std::set<std::string> all_words() {
  std::set<std::string> words{"lives", "in", "the", "seal", "of", "is", "goes", "home", "to", "breaks"};
  words.insert(kColours.begin(), kColours.end());
  for (const Topic& topic : kTopics) {
    words.insert(topic.who);
    for (const auto& [verb, thing] : topic.deeds) words.insert({verb, thing});
  }
  for (const std::size_t first : {kPeople, kTowns}) {
    for (const std::string& name : names(first, kNames)) words.insert(name);
  }
  return words;
}

void write_documents(const PretrainSampleOptions& options, const std::string& name, std::int64_t documents,
                     const std::filesystem::path& folder, const BeforeRecord& before_record) {
  AtomicFile file(folder / (name + ".txt"));
  for (std::int64_t i = 0; i < documents; ++i) {
    before_record();
    file.write((i == 0 ? "" : "\n") + pretrain_sample_document(options, name, i));
  }
  file.commit();
}

}  // namespace

std::string pretrain_sample_document(const PretrainSampleOptions& options, const std::string& file,
                                     std::int64_t index) {
  Choices choices(options.seed, file, static_cast<std::uint64_t>(index));
  std::vector<Person> people = some_people(options.people, choices);
  const Topic& topic = kTopics[static_cast<std::size_t>(choices.below(std::ssize(kTopics)))];
  std::string text;
  for (const Person& person : people) {
    text += person.name + " lives in " + person.home + ".\n";
    text += "The seal of " + person.name + " is " + person.colour + ".\n";
  }
  const std::int64_t deeds = options.sentences - options.people * kFactsOfPerson * kSaid;
  const std::int64_t first = choices.below(std::ssize(topic.deeds));
  for (std::int64_t i = 0; i < deeds; ++i) {
    const auto& [verb, thing] = topic.deeds[static_cast<std::size_t>((first + i) % std::ssize(topic.deeds))];
    text += std::string("The ") + topic.who + " " + verb + " the " + thing + ".\n";
  }
  choices.shuffle(people);
  for (const Person& person : people) {
    text += person.name + " goes home to " + person.home + ".\n";
    text += person.name + " breaks the " + person.colour + " seal.\n";
  }
  return text;
}

void write_pretrain_sample(const PretrainSampleOptions& options, const std::filesystem::path& folder,
                           const BeforeRecord& before_record) {
  check(options);
  write_file_atomically(folder / "vocab.txt", bert_vocabulary(all_words()));
  write_documents(options, "train", options.records, folder, before_record);
  write_documents(options, "dev", std::max<std::int64_t>(1, options.records / 5), folder, before_record);
}

}  // namespace etc::data
