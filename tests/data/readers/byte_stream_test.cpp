#include "data/readers/byte_stream.h"

#include "etc_core/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/support/mutate.h"

using namespace etc;
using etc::data::ByteStream;

namespace {

struct ReadBytes {
  std::string bytes;
  std::string fault;
};

ReadBytes read_all(const std::filesystem::path& path, std::size_t block) {
  ByteStream stream(path);
  ReadBytes outcome;
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

// Reads mutants of a packed text of several members.
void read_mutants(std::uint64_t count) {
  const test::TemporaryFolder folder;
  const std::string text = long_text().substr(0, 3000);
  const std::string packed = test::gzip(text.substr(0, 1000)) + test::gzip(text.substr(1000));
  std::uint64_t whole = 0, faults = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    const std::string mutant = test::mutate(packed, seed);
    test::write_file(folder / "mutant", mutant);
    const ReadBytes outcome = read_all(folder / "mutant", 512);
    constexpr std::size_t kMostPerByte = 1032;  // deflate's largest ratio
    CHECK(outcome.bytes.size() <= kMostPerByte * mutant.size());
    outcome.fault.empty() ? ++whole : ++faults;
  }
  CHECK(whole > 0);  // a damaged header may give a plain file, a damaged time stamp has no effect
  CHECK(faults > 0);
}

}  // namespace

TEST_CASE("a byte stream gives the same bytes plain, packed and packed in several members", "[readers]") {
  const test::TemporaryFolder folder;
  const std::string text = long_text();
  test::write_file(folder / "plain", text);
  test::write_file(folder / "one.gz", test::gzip(text));
  test::write_file(folder / "two.gz",
                   test::gzip(text.substr(0, 1000)) + test::gzip(text.substr(1000)) + std::string(512, '\0'));
  for (const char* name : {"plain", "one.gz", "two.gz"}) {
    CAPTURE(name);
    for (std::size_t block : {std::size_t{7}, std::size_t{1} << 20}) {
      const ReadBytes outcome = read_all(folder / name, block);
      REQUIRE(outcome.bytes == text);
      REQUIRE(outcome.fault.empty());
    }
  }
}

TEST_CASE("cut and damaged gzip data gives its readable beginning and says why it ends", "[readers]") {
  const test::TemporaryFolder folder;
  const std::string text = long_text();
  const std::string packed = test::gzip(text);
  test::write_file(folder / "cut.gz", packed.substr(0, packed.size() / 2));
  const ReadBytes cut = read_all(folder / "cut.gz", 4096);
  REQUIRE(cut.bytes.size() > 1000);
  REQUIRE(text.starts_with(cut.bytes));
  REQUIRE_THAT(cut.fault, Catch::Contains("gzip data ends early"));

  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  test::write_file(folder / "damaged.gz", damaged);
  REQUIRE_THAT(read_all(folder / "damaged.gz", 4096).fault, Catch::Contains("gzip data is damaged"));

  test::write_file(folder / "tail.gz", packed + "garbage");
  const ReadBytes tail = read_all(folder / "tail.gz", 4096);
  REQUIRE(tail.bytes == text);
  REQUIRE_THAT(tail.fault, Catch::Contains("gzip data is damaged"));
}

TEST_CASE("mutated gzip data gives bytes or a reason why there are no more", "[readers]") {
  read_mutants(200);
}

TEST_CASE("5,000 mutants of gzip data", "[readers][slow]") {
  read_mutants(5000);
}

TEST_CASE("a byte stream names the file it cannot open", "[readers]") {
  const test::TemporaryFolder folder;
  REQUIRE_THROWS_WITH(ByteStream(folder / "none"), Catch::Contains("none: cannot open: No such file"));
  REQUIRE_THROWS_WITH(ByteStream(folder.path()), Catch::Contains("expected a file, got a folder"));
}

TEST_CASE("a byte stream hashes every byte of the file as it is stored, also what nobody asked for", "[readers]") {
  const test::TemporaryFolder folder;
  const std::string text = long_text();
  for (const std::string& bytes :
       {text, test::gzip(text), std::string(), std::string("x"), text + std::string(9, '\0')}) {
    test::write_file(folder / "in", bytes);
    for (const std::size_t taken : {std::size_t{0}, std::size_t{10}, text.size()}) {
      data::Sha256 hash;
      ByteStream stream(folder / "in");
      stream.hash_into(hash);
      std::string buffer(taken + 1, '\0');
      if (taken > 0) stream.read(buffer.data(), taken);
      stream.read_rest();
      CHECK(stream.position() == static_cast<std::int64_t>(bytes.size()));
      CHECK(hash.hex() == data::sha256_hex(bytes));
    }
  }
}
