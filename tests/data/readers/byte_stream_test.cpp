#include "data/readers/byte_stream.h"

#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"

using namespace etc;
using etc::data::ByteStream;

namespace {

struct Outcome {
  std::string bytes;
  std::string fault;
};

Outcome read_all(const std::filesystem::path& path, std::size_t block) {
  ByteStream stream(path);
  Outcome outcome;
  std::string buffer(block, '\0');
  while (const std::size_t got = stream.read(buffer.data(), block)) outcome.bytes.append(buffer, 0, got);
  outcome.fault = stream.fault();
  return outcome;
}

std::string long_text() {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919) + ",";
  return text;
}

}  // namespace

TEST_CASE("a byte stream gives the same bytes plain, packed and packed in several members", "[readers]") {
  const test::TemporaryFolder folder;
  const std::string text = long_text();
  write_file_atomically(folder / "plain", text);
  write_file_atomically(folder / "one.gz", test::gzip(text));
  write_file_atomically(folder / "two.gz",
                        test::gzip(text.substr(0, 1000)) + test::gzip(text.substr(1000)) + std::string(512, '\0'));
  for (const char* name : {"plain", "one.gz", "two.gz"}) {
    CAPTURE(name);
    for (std::size_t block : {std::size_t{7}, std::size_t{1} << 20}) {
      const Outcome outcome = read_all(folder / name, block);
      REQUIRE(outcome.bytes == text);
      REQUIRE(outcome.fault.empty());
    }
  }
}

TEST_CASE("cut and damaged gzip data gives its readable beginning and says why it ends", "[readers]") {
  const test::TemporaryFolder folder;
  const std::string text = long_text();
  const std::string packed = test::gzip(text);
  write_file_atomically(folder / "cut.gz", packed.substr(0, packed.size() / 2));
  const Outcome cut = read_all(folder / "cut.gz", 4096);
  REQUIRE(cut.bytes.size() > 1000);
  REQUIRE(text.starts_with(cut.bytes));
  REQUIRE_THAT(cut.fault, Catch::Contains("gzip data ends early"));

  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  write_file_atomically(folder / "damaged.gz", damaged);
  REQUIRE_THAT(read_all(folder / "damaged.gz", 4096).fault, Catch::Contains("gzip data is damaged"));

  write_file_atomically(folder / "tail.gz", packed + "garbage");
  const Outcome tail = read_all(folder / "tail.gz", 4096);
  REQUIRE(tail.bytes == text);
  REQUIRE_THAT(tail.fault, Catch::Contains("gzip data is damaged"));
}

TEST_CASE("a byte stream names the file it cannot open", "[readers]") {
  const test::TemporaryFolder folder;
  REQUIRE_THROWS_WITH(ByteStream(folder / "none"), Catch::Contains("none: cannot open: No such file"));
  REQUIRE_THROWS_WITH(ByteStream(folder.path()), Catch::Contains("expected a file, got a folder"));
}
