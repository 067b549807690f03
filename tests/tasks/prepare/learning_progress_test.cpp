// The progress of learning a vocabulary or a sentence splitter from raw files.
#include <algorithm>
#include <vector>

#include "etc_core/base/json.h"
#include "etc_core/base/log_receiver.h"
#include "tasks/prepare/learn_splitter.h"
#include "tasks/prepare/learn_vocabulary.h"
#include "tasks/registry.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"

using namespace etc;
namespace fs = std::filesystem;

namespace {

struct LearningScene {
  test::TemporaryFolder folder;
  std::vector<fs::path> inputs;
  std::vector<ProgressReport> reports;

  void add_input(const std::string& name, const std::string& bytes) {
    inputs.push_back(folder / name);
    test::write_file(inputs.back(), bytes);
  }

  void learn_vocabulary(const Json& more = Json::object()) {
    const ProgressReceiver receiver([this](const ProgressReport& report) { reports.push_back(report); });
    const prepare::PreparationKind& kind = preparation_kind("pretrain");
    prepare::learn_vocabulary("pretrain", kind, with_overrides(kind, kind.settings.defaults(), more, "test"), 200,
                              inputs, folder / "vocab.txt");
  }

  void learn_splitter() {
    const ProgressReceiver receiver([this](const ProgressReport& report) { reports.push_back(report); });
    const prepare::PreparationKind& kind = preparation_kind("pretrain");
    const Json settings = {{"splitter", "punkt:" + (folder / "tables").string()}, {"lines", "paragraphs"}};
    prepare::learn_splitter("pretrain", kind, with_overrides(kind, kind.settings.defaults(), settings, "test"), inputs);
  }

  // Checks that the counts grow to the total, and returns that.
  std::int64_t check_reports() const {
    REQUIRE(reports.size() > 100);
    for (std::size_t i = 1; i < reports.size(); ++i) {
      CHECK(reports[i].done >= reports[i - 1].done);
      CHECK(reports[i].total == reports[0].total);
    }
    CHECK(reports.back().done == reports[0].total);
    const auto half = std::count_if(reports.begin(), reports.end(),
                                    [&](const ProgressReport& report) { return report.done < report.total / 2; });
    CHECK(static_cast<double>(half) / static_cast<double>(reports.size()) == Approx(0.5).margin(0.1));
    return reports[0].total;
  }
};

std::string lines_of(std::int64_t count) {
  std::string text;
  for (std::int64_t i = 0; i < count; ++i) text += "Mr. Brown saw the cat. It sat on the mat.\n";  // 42 bytes
  return text;
}

}  // namespace

TEST_CASE("learning a vocabulary tells how much of the files is read", "[prepare]") {
  LearningScene scene;
  scene.add_input("a.txt", lines_of(500));
  scene.add_input("b.txt", lines_of(500));
  scene.learn_vocabulary();
  CHECK(scene.check_reports() == 42);  // KB
  CHECK(scene.reports[0].unit == "KB");
}

TEST_CASE("learning a splitter counts each of its passes over the files", "[prepare]") {
  LearningScene scene;
  scene.add_input("a.txt", lines_of(1000));
  scene.learn_splitter();
  CHECK(scene.check_reports() == 126);
}

TEST_CASE("a compressed file counts with its size when it is unpacked", "[prepare]") {
  LearningScene scene;
  scene.add_input("a.gz", test::gzip(lines_of(1000)));
  scene.learn_vocabulary();
  CHECK(scene.check_reports() == 42);
}

TEST_CASE("texts that are a part of their records stand for the whole files", "[prepare]") {
  LearningScene scene;
  std::string lines;
  for (int i = 0; i < 500; ++i)
    lines += R"({"text": "the cat sat on the mat", "more": "1234567890123456789"})"
             "\n";
  for (const char* name : {"a.jsonl", "b.jsonl", "c.jsonl"}) scene.add_input(name, lines);
  scene.learn_vocabulary({{"text_key", "text"}});
  CHECK(scene.check_reports() == 3 * std::ssize(lines) / 1000);
}
