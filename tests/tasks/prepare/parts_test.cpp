// The parts that a preparation keeps of finished inputs: which run may use them, and what happens when they are
// damaged.
#include "tasks/prepare/parts.h"

#include <unistd.h>

#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

const std::vector<data::SourceFile> kInputs = {{"a.json", 5, std::string(64, 'a')}};

prepare::PartFiles finished_part(const prepare::Parts& parts) {
  const prepare::PartFiles files = parts.files_of(kInputs);
  test::write_file(files.examples, "examples");
  test::write_file(files.report, "");
  test::write_file(files.ids, "\"id\"\n");
  prepare::Counts counts;
  counts.records = 7;
  parts.finish(files, counts);
  return files;
}

}  // namespace

TEST_CASE("parts that one preparation works on are refused to another and not removed by it", "[tasks][prepare]") {
  const test::TemporaryFolder folder;
  const fs::path output = folder / "out.h5", parts_folder = folder / "out.h5.parts";
  prepare::Parts first(output, Json::object()), second(output, Json::object());
  first.hold();
  const prepare::PartFiles files = finished_part(first);
  CHECK_THROWS_WITH(second.hold(), Contains("out.h5.parts: in use by another preparation (process " +
                                            std::to_string(::getpid()) + "): expected"));
  second.remove();
  CHECK(first.finished(files));
  first.remove();
  CHECK_FALSE(fs::exists(parts_folder));
  second.hold();
  CHECK(fs::exists(parts_folder / "lock"));
}

TEST_CASE("a preparation that ends leaves its finished parts and no lock, and no empty folder", "[tasks][prepare]") {
  const test::TemporaryFolder folder;
  const fs::path output = folder / "out.h5", parts_folder = folder / "out.h5.parts";
  {
    prepare::Parts parts(output, Json::object());
    parts.hold();
    CHECK(fs::exists(parts_folder));
  }
  CHECK_FALSE(fs::exists(parts_folder));
  {
    prepare::Parts parts(output, Json::object());
    parts.hold();
    finished_part(parts);
  }
  CHECK_FALSE(fs::exists(parts_folder / "lock"));
  prepare::Parts next(output, Json::object());
  CHECK(next.finished(next.files_of(kInputs)).value().records == 7);
  // Without hold() the parts are removed as well, but files of the user stay.
  test::write_file(parts_folder / "notes", "mine");
  next.remove();
  CHECK(std::distance(fs::directory_iterator(parts_folder), {}) == 1);
  CHECK(read_file(parts_folder / "notes") == "mine");
}

TEST_CASE("a part of which any file is damaged, cut or gone is not taken, with a warning", "[tasks][prepare]") {
  const test::TemporaryFolder folder;
  prepare::Parts parts(folder / "out.h5", Json::object());
  parts.hold();
  log::also_to_file(folder / "log");
  const prepare::PartFiles files = finished_part(parts);
  CHECK(parts.finished(files));
  const auto log_bytes = [&] { return fs::file_size(folder / "log"); };
  CHECK(log_bytes() == 0);
  const auto check_damaged = [&](const fs::path& path) {
    CAPTURE(path);
    const std::size_t before = log_bytes();
    CHECK_FALSE(parts.finished(files));
    CHECK_THAT(read_file(folder / "log").substr(before), Contains("its input is prepared again"));
    finished_part(parts);
    CHECK(parts.finished(files));
  };
  for (const fs::path& path : {files.examples, files.report, files.ids, files.state}) {
    const std::string whole = read_file(path);
    test::write_file(path, whole + "x");
    check_damaged(path);
    if (whole.empty()) continue;
    test::write_file(path, "X" + whole.substr(1));
    check_damaged(path);
    test::write_file(path, whole.substr(1));
    check_damaged(path);
    if (path == files.state) continue;
    fs::remove(path);
    check_damaged(path);
  }
  const std::size_t before = log_bytes();
  fs::remove(files.state);
  CHECK_FALSE(parts.finished(files));  // without its state the part counts as never finished: no warning
  CHECK(log_bytes() == before);
}

TEST_CASE("an error while a part is read comes with what to delete, a stop does not", "[tasks][prepare]") {
  const test::TemporaryFolder folder;
  const prepare::Parts parts(folder / "out.h5", Json::object());
  CHECK(parts.reading([] { return 5; }) == 5);
  CHECK_THROWS_WITH(parts.reading([]() -> int { throw Error("a.h5: damaged"); }),
                    "a.h5: damaged (a part of the preparation: delete " + (folder / "out.h5.parts").string() +
                        " and run the command again)");
  CHECK_THROWS_AS(parts.reading([] { throw Interrupted("stopped"); }), Interrupted);
  CHECK_THROWS_WITH(parts.reading([] { throw Interrupted("stopped"); }), "stopped");
  CHECK_THROWS_WITH(parts.reading([] { throw OutOfMemory("no memory"); }), "no memory");
}
