// Generated SQuAD questions: what they ask, equal bytes for equal seeds, refused options.
#include "data/sample/squad_sample.h"

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/raw_records.h"

using namespace etc;

TEST_CASE("a generated text says the answer once, at its place, and of other subjects something else", "[squad]") {
  data::SquadSampleOptions options;
  options.impossible = 3;
  std::int64_t impossible = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    CAPTURE(i);
    const Json paragraph = data::squad_sample_paragraph(options, "dev", i);
    const auto context = paragraph.at("context").get<std::string>();
    const Json& question = paragraph.at("qas").at(0);
    const auto asked = question.at("question").get<std::string>();
    const std::string subject = asked.substr(asked.rfind(' ') + 1, asked.size() - asked.rfind(' ') - 2);
    if (question.at("is_impossible").get<bool>()) {
      ++impossible;
      CHECK(context.find(subject) == std::string::npos);
      CHECK(question.at("answers").empty());
      continue;
    }
    const Json& answer = question.at("answers").at(0);
    const auto text = answer.at("text").get<std::string>();
    const auto at = answer.at("answer_start").get<std::size_t>();
    CHECK(context.substr(at, text.size()) == text);
    CHECK(context.find(text) == at);
    CHECK(context.rfind(text) == at);
    CHECK(context.find(subject + " is ") < at);
    CHECK(at - context.find(subject + " is ") < subject.size() + 16);
  }
  CHECK(impossible > 60);
  CHECK(impossible < 120);
}

TEST_CASE("equal options give equal SQuAD files, of so many questions", "[squad]") {
  const test::TemporaryFolder folder;
  data::SquadSampleOptions options;
  options.records = 60;
  data::write_squad_sample(options, folder / "a");
  data::write_squad_sample(options, folder / "b");
  for (const char* name : {"train.json", "dev.json", "vocab.txt"}) {
    CHECK(read_file(folder / "a" / name) == read_file(folder / "b" / name));
  }
  CHECK(test::read_raw_records(folder / "a" / "train.json", data::RecordLayout::questions).size() == 60);
  CHECK(test::read_raw_records(folder / "a" / "dev.json", data::RecordLayout::questions).size() == 12);
}

TEST_CASE("options of the SQuAD generator that cannot be meant are refused", "[squad]") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(data::write_squad_sample({.records = 0}, folder.path()), Catch::Contains("--records"));
  CHECK_THROWS_WITH(data::write_squad_sample({.subjects = 1}, folder.path()), Catch::Contains("--subjects"));
  CHECK_THROWS_WITH(data::write_squad_sample({.impossible = 11}, folder.path()), Catch::Contains("--impossible"));
}
