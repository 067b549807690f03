// Pairs and runs of sentences from random texts, and the random order without memory.
#include "tasks/pretrain/instances.h"

#include <set>

#include "tasks/pretrain/random_order.h"
#include "tests/support/catch.h"
#include "tests/tasks/pretrain/text_in_memory.h"

namespace etc::pretrain {
namespace {

using test::TextInMemory;
using Documents = std::vector<std::vector<std::vector<std::int64_t>>>;

// Documents of 1 … 12 sentences of 1 … 20 pieces, each piece another number.
Documents random_documents(std::int64_t count, std::uint64_t seed) {
  CounterDraws draws(seed);
  Documents documents(static_cast<std::size_t>(count));
  std::int64_t next = 0;
  for (auto& document : documents) {
    document.resize(static_cast<std::size_t>(draws.between(1, 12)));
    for (auto& sentence : document) {
      for (std::int64_t pieces = draws.between(1, 20); pieces > 0; --pieces) sentence.push_back(next++);
    }
  }
  return documents;
}

std::vector<Instance> pairs_of(TextInMemory& text, std::int64_t document, const PairRules& rules, std::uint64_t key) {
  CounterDraws draws(key);
  std::vector<Instance> made;
  pair_instances(text, document, rules, draws, [&](const Instance& instance) { made.push_back(instance); });
  return made;
}

bool inside(TextInMemory& text, std::int64_t document, const PieceRange& range) {
  const TextIndex::Document d = text.document(document);
  return text.first_piece(d.first_sentence) <= range.begin &&
         range.begin + range.length <= text.first_piece(d.first_sentence + d.sentences);
}

}  // namespace

TEST_CASE("pairs fit, have two segments, and B is of the same document or of another one", "[pretrain]") {
  TextInMemory text(random_documents(30, 1));
  std::int64_t random = 0, all = 0;
  for (const std::int64_t length : {5, 6, 24, 128}) {
    for (std::int64_t document = 0; document < text.documents(); ++document) {
      for (std::uint64_t key = 0; key < 10; ++key) {
        std::int64_t number = 0;
        for (const Instance& pair : pairs_of(text, document, {length, 0.3}, key)) {
          CAPTURE(length, document, key, number);
          CHECK(pair.number == number++);
          CHECK((pair.a.length >= 1 && pair.b.length >= 1));
          CHECK(pair.a.length + pair.b.length + 3 <= length);
          CHECK(inside(text, document, pair.a));
          CHECK(inside(text, document, pair.b) == (pair.random_next == 0));
          if (pair.random_next == 0) CHECK(pair.a.begin + pair.a.length <= pair.b.begin);
          random += pair.random_next;
          ++all;
        }
        CHECK(number > 0);
      }
    }
  }
  CHECK(static_cast<double>(random) / static_cast<double>(all) > 0.5);
  CHECK(random < all);
}

TEST_CASE("sentences behind a random next are used again", "[pretrain]") {
  // The instances cover the whole document: after a random next sentence the next instance begins after A, otherwise
  // after B.
  TextInMemory text(random_documents(8, 2));
  for (std::int64_t document = 0; document < 8; ++document) {
    std::int64_t next = text.first_piece(text.document(document).first_sentence);
    for (const Instance& pair : pairs_of(text, document, {512, 0}, 4)) {
      CHECK(pair.a.begin == next);
      next = pair.random_next == 1 ? pair.a.begin + pair.a.length : pair.b.begin + pair.b.length;
    }
    const TextIndex::Document d = text.document(document);
    CHECK(next == text.first_piece(d.first_sentence + d.sentences));
  }
}

TEST_CASE("of a single document the random next comes from itself", "[pretrain]") {
  TextInMemory text(Documents{{{1, 2, 3}}});
  const std::vector<Instance> pairs = pairs_of(text, 0, {128, 0.1}, 1);
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].random_next == 1);
  CHECK(pairs[0].a.length == 3);
  CHECK(pairs[0].b.length == 3);
}

TEST_CASE("runs take as many sentences as fit and begin where the last one ended", "[pretrain]") {
  TextInMemory text(Documents{{{1, 1, 1}, {2, 2}, {3, 3, 3, 3}, {4}, {5}, {6}, {7, 7}}});
  const auto runs = [&](const RunRules& rules, std::int64_t left_out) {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    CHECK(run_instances(text, 0, rules, [&](const Instance& run) {
            CHECK(run.number == std::ssize(found));
            CHECK(run.random_next == -1);
            CHECK(run.b.length == 0);
            CHECK(run.a.begin == text.first_piece(run.first_sentence));
            CHECK(run.a.length == text.first_piece(run.first_sentence + run.sentences) - run.a.begin);
            found.emplace_back(run.first_sentence, run.sentences);
          }) == left_out);
    return found;
  };
  using Found = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(runs({5, 100, 1}, 0) == Found{{0, 2}, {2, 2}, {4, 3}});
  CHECK(runs({5, 2, 1}, 0) == Found{{0, 2}, {2, 2}, {4, 2}, {6, 1}});
  CHECK(runs({5, 2, 2}, 1) == Found{{0, 2}, {2, 2}, {4, 2}});
  CHECK(runs({100, 100, 1}, 0) == Found{{0, 7}});
}

TEST_CASE("the random order holds every place once and differs by its key", "[pretrain]") {
  for (const std::int64_t count : {1, 2, 3, 4, 5, 17, 64, 65, 1000}) {
    CAPTURE(count);
    const RandomOrder order(count, 9), other(count, 10);
    std::set<std::int64_t> seen;
    std::int64_t moved = 0, different = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      seen.insert(order.at(i));
      moved += order.at(i) != i ? 1 : 0;
      different += order.at(i) != other.at(i) ? 1 : 0;
    }
    CHECK(std::ssize(seen) == count);
    CHECK((*seen.begin() == 0 && *seen.rbegin() == count - 1));
    if (count >= 17) CHECK(moved > count / 2);
    if (count >= 17) CHECK(different > count / 2);
  }
}

}  // namespace etc::pretrain
