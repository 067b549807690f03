// The generated text: equal for equal seeds, facts are repeated, and all words are in its vocabulary.
#include "data/sample/pretrain_sample.h"

#include <sstream>

#include "tests/tasks/pretrain/prepare_scene.h"
#include "tests/tasks/sample_checks.h"

namespace etc::test {

using data::PretrainSampleOptions;

TEST_CASE("equal seeds write equal texts", "[pretrain]") {
  const TemporaryFolder folder;
  PretrainSampleOptions options;
  options.records = 20;
  check_equal_seeds(options, data::write_pretrain_sample, folder, ".txt");
}

TEST_CASE("options that cannot be meant are refused before anything is written", "[pretrain]") {
  PretrainSampleOptions none, crowd, short_one;
  none.records = 0;
  crowd.people = 7;
  short_one.sentences = 8;
  check_refused_options(data::write_pretrain_sample, PretrainSampleOptions{}, {none, crowd, short_one});
}

TEST_CASE("what a document says at its beginning it says again at its end", "[pretrain]") {
  PretrainSampleOptions options;
  options.people = 3;
  options.sentences = 40;
  for (std::int64_t index = 0; index < 20; ++index) {
    std::istringstream lines(data::pretrain_sample_document(options, "train", index));
    std::vector<std::string> sentences;
    for (std::string line; std::getline(lines, line);) sentences.push_back(line);
    REQUIRE(sentences.size() == 40);
    for (std::size_t person = 0; person < 3; ++person) {
      std::istringstream fact(sentences[2 * person]);
      std::string name, lives, in, home;
      fact >> name >> lives >> in >> home;
      CHECK(std::count(sentences.begin() + 28, sentences.end(), name + " goes home to " + home) == 1);
    }
    // The sentences between the facts repeat in a fixed order, so that each one predicts the next.
    CHECK(sentences[6] == sentences[14]);
    CHECK(sentences[6] != sentences[7]);
  }
}

TEST_CASE("the generated text is prepared without an unknown word", "[pretrain]") {
  PretrainScene scene;
  PretrainSampleOptions options;
  options.records = 30;
  data::write_pretrain_sample(options, scene.folder.path());
  scene.settings = {{"max_seq_length", 64}, {"dupe_factor", 1}};
  scene.run({"train.txt"});
  CHECK(scene.counts.records == 30);
  for (const data::Example& example : scene.examples()) {
    const Numbers& ids = numbers_of(example, "long_token_ids");
    CHECK(std::count(ids.begin(), ids.end(), 100) == 0);
  }
}

}  // namespace etc::test
