// Plain text in blocks of whole lines.
#include "data/readers/line_blocks.h"

#include <algorithm>
#include <optional>

#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/gzip.h"
#include "tests/support/mutate.h"

using namespace etc;
using namespace etc::data;

namespace {

struct ReadLines {
  std::vector<RecordSlice> blocks;
  std::optional<InputFault> fault;
  std::vector<FileNote> notes;

  std::string text() const {
    std::string all;
    for (const RecordSlice& block : blocks) all += block.text;
    return all;
  }
};

ReadLines blocks_of(const std::string& bytes, BlockEnd end = BlockEnd::any_line) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "raw", bytes);
  ByteStream stream(folder / "raw");
  LineBlockReader reader(stream, end);
  ReadLines outcome;
  try {
    for (RecordSlice block; reader.next(block);) outcome.blocks.push_back(block);
  } catch (const InputFault& fault) {
    outcome.fault = fault;
  }
  outcome.notes = reader.notes();
  return outcome;
}

// Lines of 100 bytes, every tenth empty.
std::string many_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i % 10 == 9 ? "" : std::to_string(i) + std::string(90, 'x')) + "\n";
  return text;
}

}  // namespace

TEST_CASE("a text in blocks is the text, each block of whole lines at its place", "[readers]") {
  const std::string text = many_lines(5000) + "the end";
  for (const BlockEnd end : {BlockEnd::any_line, BlockEnd::empty_line}) {
    const ReadLines outcome = blocks_of(text, end);
    REQUIRE(!outcome.fault);
    CHECK(outcome.text() == text);
    CHECK(outcome.blocks.size() > 5);
    std::size_t at = 0;
    for (const RecordSlice& block : outcome.blocks) {
      CHECK(block.begin.byte_offset == static_cast<std::int64_t>(at));
      CHECK(block.begin.line == 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      CHECK(block.index == &block - outcome.blocks.data());
      at += block.text.size();
      if (at == text.size()) continue;
      CHECK(block.text.ends_with(end == BlockEnd::any_line ? "\n" : "\n\n"));
      CHECK(block.text.size() >= LineBlockReader::kBlockBytes);
      CHECK(block.text.size() < LineBlockReader::kBlockBytes + 2000);
    }
  }
  CHECK(blocks_of("").blocks.empty());
  CHECK(blocks_of("\n").text() == "\n");
}

TEST_CASE("a byte-order mark is left out and noted", "[readers]") {
  const ReadLines outcome = blocks_of("\xEF\xBB\xBFone\ntwo");
  CHECK(outcome.text() == "one\ntwo");
  CHECK(outcome.notes.size() == 1);
  CHECK(blocks_of("one").notes.empty());
}

TEST_CASE("of cut gzip data the whole lines are delivered, then the fault", "[readers]") {
  const std::string text = many_lines(20'000), packed = test::gzip(text);
  const ReadLines outcome = blocks_of(packed.substr(0, packed.size() / 2));
  REQUIRE(outcome.fault);
  CHECK(outcome.fault->code() == "gzip_truncated");
  const std::string read = outcome.text();
  CHECK(read.ends_with('\n'));
  CHECK(text.starts_with(read));
  CHECK(read.size() > text.size() / 4);
  CHECK(outcome.fault->where().byte_offset == static_cast<std::int64_t>(read.size()));
}

TEST_CASE("a paragraph of any length and a line beyond all bounds end a block", "[readers]") {
  std::string paragraph;
  while (paragraph.size() < LineBlockReader::kLargestParagraph + 1000) paragraph += std::string(99, 'y') + "\n";
  const ReadLines outcome = blocks_of(paragraph, BlockEnd::empty_line);
  CHECK(outcome.blocks.size() == 2);
  CHECK(outcome.text() == paragraph);
  const ReadLines endless = blocks_of("short\n" + std::string(TextLines::kLongestLine + 1, 'z') + "\nmore\n");
  CHECK(endless.text() == "short\n");
  REQUIRE(endless.fault);
  CHECK(endless.fault->code() == "line_too_long");
  CHECK(endless.fault->where().line == 2);
}

TEST_CASE("damaged texts are delivered as they are, packed ones up to the damage", "[readers]") {
  const std::string text = many_lines(1500), packed = test::gzip(text);
  int faults = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const std::string plain = test::mutate(text, seed);
    const ReadLines whole = blocks_of(plain);
    if (!whole.fault) CHECK(plain.ends_with(whole.text()));  // without a byte-order mark
    const ReadLines outcome = blocks_of(test::mutate(packed, seed), BlockEnd::empty_line);
    if (!outcome.fault) continue;
    ++faults;
    CHECK(std::string(outcome.fault->what()).starts_with("byte "));
  }
  CHECK(faults > 20);
}
