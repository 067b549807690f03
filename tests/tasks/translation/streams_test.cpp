// Parallel texts of which one can be read only once.
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "data/text/sha256.h"
#include "tasks/prepare/run.h"
#include "tasks/translation/prepare.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::translation;

TEST_CASE("a target that is a stream is stored with its size and hash", "[translation]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "v.bpe",
                   "#version: 0.2\nl o\nlo w</w>\n#dictionary words=13a case=mixed\nlow 5\nlo@@ 3\nw 3\n");
  const std::string sources = "low\nlow w\n", targets = "w\nlow\n";
  for (const char* name : {"s", "s0"}) test::write_file(folder / name, sources + (name[1] == '0' ? "" : "w\n"));
  test::write_file(folder / "t0", targets);
  const prepare::PreparationKind& kind = preparation_kind();
  const auto preparation = kind.make(kind.settings.defaults(), folder / "v.bpe", prepare::Labels::required);
  REQUIRE(::mkfifo((folder / "t").c_str(), 0600) == 0);
  const std::string streamed = targets + "low\n";
  for (const bool several : {false, true}) {
    CAPTURE(several);
    prepare::RunOptions options;
    options.inputs = {folder / "s"};
    options.targets = {folder / "t"};
    if (several) {
      options.inputs.insert(options.inputs.begin(), folder / "s0");
      options.targets.insert(options.targets.begin(), folder / "t0");
    }
    options.output = folder / "out.h5";
    options.report = folder / "report.jsonl";
    options.split = "train";
    std::thread writer([&] { std::ofstream(folder / "t", std::ios::binary) << streamed; });
    const prepare::Counts counts = prepare::run(*preparation, options);
    writer.join();
    CHECK(counts.examples == (several ? 5 : 3));
    const data::DatasetInfo info = data::read_dataset_info(options.output);
    REQUIRE(info.source_files.size() == (several ? 4 : 2));
    const data::SourceFile& target = info.source_files.back();
    CHECK(target.name == "t");
    CHECK(target.bytes == std::ssize(streamed));
    CHECK(target.sha256 == data::sha256_hex(streamed));
    CHECK(info.source_files.front().sha256 == data::sha256_hex(several ? sources : sources + "w\n"));
  }
}
