// Lines are returned as soon as they are complete: from a pipe with an open writer, and up to the damage in a file.
#include "data/readers/text_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"

namespace etc::data {
namespace {

TEST_CASE("a line of a pipe is there before the next one is written", "[readers]") {
  const test::TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string();
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int writer = open(pipe.c_str(), O_RDWR);  // O_RDWR does not block without a reader
  REQUIRE(writer >= 0);
  std::optional<ByteStream> stream;
  std::optional<TextLines> lines;
  for (const std::string line : {"\n", "a\n", "\n", "long enough\n"}) {
    CAPTURE(line);
    REQUIRE(write(writer, line.data(), line.size()) == std::ssize(line));
    std::string read;
    std::future<bool> reading = std::async(std::launch::async, [&] {
      if (!stream) lines.emplace(stream.emplace(pipe)).skip_byte_order_mark();
      return lines->append(read);
    });
    const bool there = reading.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    CHECK(there);
    if (!there) close(writer);  // so that the reader sees the end
    CHECK(reading.get());
    CHECK(read == line);
    if (!there) return;
  }
  close(writer);
  std::string rest;
  CHECK_FALSE(lines->append(rest));
}

TEST_CASE("damaged data are a fault behind the last whole line, however often it is asked for", "[readers]") {
  const test::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * i) + "\n";
  const std::string packed = test::gzip(text);
  test::write_file(folder / "cut.gz", packed.substr(0, packed.size() / 2));
  ByteStream stream(folder / "cut.gz");
  TextLines lines(stream);
  std::string read, code;
  try {
    while (lines.append(read)) continue;
  } catch (const InputFault& fault) {
    code = fault.code();
  }
  CHECK(code == "gzip_truncated");
  CHECK(read.ends_with('\n'));
  CHECK(text.starts_with(read));
  const std::string before = read;
  CHECK_THROWS_AS(lines.append(read), InputFault);
  CHECK(read == before);
}

}  // namespace
}  // namespace etc::data
