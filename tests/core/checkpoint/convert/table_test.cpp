#include "etc_core/checkpoint/convert/tf_bundle/table.h"

#include "etc_core/base/error.h"
#include "tests/core/checkpoint/convert/raw_table.h"
#include "tests/support/catch.h"
#include "tests/support/mutate.h"

using namespace etc;
using namespace etc::convert;
using Catch::Contains;
using test::raw_block;
using test::raw_entry;
using test::raw_table;

namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

Entries read(const std::string& table) {
  Entries entries;
  for_each_table_entry(table, "t", [&](std::string_view key, std::string_view value) {
    entries.emplace_back(std::string(key), std::string(value));
  });
  return entries;
}

Entries many_entries() {
  Entries entries = {{"", "header"}};
  for (int i = 100; i < 400; ++i) {
    entries.emplace_back(fmt::format("model/layer_{}/kernel", i), std::string(static_cast<std::size_t>(i % 7), 'v'));
  }
  return entries;
}

}  // namespace

TEST_CASE("a table gives back its entries for any size of block", "[convert]") {
  const Entries entries = many_entries();
  for (std::size_t block_bytes : {1u, 64u, 300u, 1u << 18}) {
    TableWriter writer(block_bytes);
    for (const auto& [key, value] : entries) writer.add(key, value);
    REQUIRE(read(writer.finish()) == entries);
  }
  REQUIRE(read(TableWriter().finish()).empty());
  TableWriter writer;
  writer.add("b", "");
  REQUIRE_THROWS_WITH(writer.add("b", ""), Contains("b comes after b"));
  REQUIRE_THROWS_WITH(writer.add("a", ""), Contains("a comes after b"));
  REQUIRE_THROWS_WITH(writer.add(std::string(1025, 'c'), ""), Contains("at most 1024 bytes"));
}

TEST_CASE("a table block compressed with Snappy is read", "[convert]") {
  const std::string contents = raw_block(raw_entry(0, "abcabcabcabc", "xyz") + raw_entry(3, "d", ""));
  // Written by hand: the length, three bytes and "abc" as a literal, nine bytes from three back, the rest as a literal.
  std::string packed;
  append_varint(packed, contents.size());
  packed += static_cast<char>((6 - 1) << 2);
  packed += contents.substr(0, 6);
  packed += static_cast<char>(((9 - 4) << 2) | 1);
  packed += static_cast<char>(3);
  packed += static_cast<char>((contents.size() - 15 - 1) << 2);
  packed += contents.substr(15);
  REQUIRE(read(raw_table({{packed, kSnappy}})) == Entries{{"abcabcabcabc", "xyz"}, {"abcd", ""}});

  std::string bomb;  // declares a size of 4 GB
  append_varint(bomb, 0xffffffffu);
  REQUIRE_THROWS_WITH(read(raw_table({{bomb + packed, kSnappy}})), Contains("not valid Snappy data"));
  REQUIRE_THROWS_WITH(read(raw_table({{packed.substr(0, packed.size() - 2), kSnappy}})),
                      Contains("not valid Snappy data"));
}

TEST_CASE("a damaged table is refused with the reason", "[convert]") {
  const std::string block = raw_block(raw_entry(0, "a", "1"));
  const std::string good = raw_table({{block}});
  REQUIRE(read(good) == Entries{{"a", "1"}});

  REQUIRE_THROWS_WITH(read(""), Contains("t: expected a table of at least 48 bytes, got 0"));
  std::string bad = good;
  bad.back() ^= 1;
  REQUIRE_THROWS_WITH(read(bad), Contains("not the index of a TensorFlow checkpoint"));
  bad = good;
  bad[1] ^= 1;
  REQUIRE_THROWS_WITH(read(bad), Contains("t: block at 0: checksum: expected "));
  REQUIRE_THROWS_WITH(read(raw_table({{block, '\7'}})), Contains("compression 7: expected 0 (stored) or 1 (Snappy)"));
  REQUIRE_THROWS_WITH(read(raw_table({{"abc"}})), Contains("has no restarts"));
  REQUIRE_THROWS_WITH(read(raw_table({{std::string(8, '\x7f')}})), Contains("restarts"));
  REQUIRE_THROWS_WITH(read(raw_table({{raw_block(raw_entry(1, "a", ""))}})), Contains("a key shares 1 of 0 bytes"));
  REQUIRE_THROWS_WITH(read(raw_table({{raw_block(raw_entry(0, std::string(1025, 'k'), ""))}})),
                      Contains("adds 1025: expected at most 1024"));
  REQUIRE_THROWS_WITH(read(raw_table({{raw_block(raw_entry(0, "a", "1") + raw_entry(1, "", "2"))}})),
                      Contains("a comes after a: expected ascending names, each once"));
  REQUIRE_THROWS_WITH(read(raw_table({{block}, {block}})), Contains("a comes after a"));
  REQUIRE_THROWS_WITH(read(raw_table({{raw_block(std::string("\0\1\x7f", 3) + "a")}})),
                      Contains("expected 127 more bytes, got 0"));
  REQUIRE_THROWS_WITH(read(raw_table({{raw_block(std::string(11, '\xff'))}})), Contains("more than 64 bits"));

  const std::string far = raw_block(raw_entry(0, "z", test::raw_handle(1u << 30, 4)));
  REQUIRE_THROWS_WITH(read(raw_table({{block}}, far)), Contains("a block of 4 bytes at 1073741824 lies outside"));
  const std::string huge = raw_block(raw_entry(0, "z", test::raw_handle(1, ~std::uint64_t{0} - 1)));
  REQUIRE_THROWS_WITH(read(raw_table({{block}}, huge)), Contains("lies outside the file"));
  const std::string here = test::raw_handle(0, block.size());
  const std::string twice = raw_block(raw_entry(0, "a", here) + raw_entry(0, "b", here));
  REQUIRE_THROWS_WITH(read(raw_table({{block}}, twice)), Contains("blocks out of order at 0"));
}

namespace {

// Mutants of a table's bytes, which its checksums detect, and of a block's contents with a correct checksum.
void read_table_mutants(int count) {
  TableWriter writer(400);
  std::string entries;
  for (const auto& [key, value] : many_entries()) {
    writer.add(key, value);
    if (entries.size() < 300) entries += raw_entry(0, key, value);
  }
  const std::string whole = writer.finish(), block = raw_block(entries);
  int refused = 0;
  for (int seed = 0; seed < count; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    const std::string inside = test::mutate(block, number);
    for (const std::string& table : {test::mutate(whole, number), raw_table({{inside}}), raw_table({{block}}, inside),
                                     raw_table({{inside, kSnappy}})}) {
      try {
        read(table);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > count);
}

}  // namespace

TEST_CASE("mutants of a table are read or refused, never crash", "[convert]") {
  read_table_mutants(200);
}

TEST_CASE("many mutants of a table are read or refused, never crash", "[convert][slow]") {
  read_table_mutants(5000);
}
