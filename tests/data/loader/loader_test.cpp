#include "data/loader/loader.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <thread>

#include "data/loader/order.h"
#include "tests/data/store/samples.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/h5_edit.h"
#include "tests/support/no_more_threads.h"

using namespace etc;
using namespace etc::data;
using namespace etc::test;
using Catch::Matchers::Contains;

namespace {

using Ids = std::vector<std::int64_t>;

// A data set of n samples and its reader.
struct Samples {
  explicit Samples(std::int64_t n) : rows(write_samples(folder / "a.h5", n)) {
    reader =
        std::make_shared<const DatasetReader>(std::vector<std::filesystem::path>{folder / "a.h5"}, sample_schema());
  }
  std::int64_t tokens(std::int64_t index) const {
    return reader->lengths("long")[static_cast<std::size_t>(index)] +
           reader->lengths("global")[static_cast<std::size_t>(index)];
  }

  TemporaryFolder folder;
  std::vector<Example> rows;
  std::shared_ptr<const DatasetReader> reader;
};

// The parts of a batch that must be equal in a resumed run.
struct Seen {
  std::vector<Ids> indices, ordinals;  // per micro-batch
  std::int64_t examples, all_examples, epoch, after, first_micro_batch;

  bool operator==(const Seen&) const = default;
};

std::vector<Seen> run(const Samples& samples, const LoaderOptions& options, std::int64_t start = 0,
                      std::size_t most = 1000) {
  Loader loader(samples.reader, options, {start});
  std::vector<Seen> all;
  LoadedBatch batch;
  while (all.size() < most && loader.next(batch)) {
    Seen seen{{}, {}, batch.examples, batch.all_examples, batch.epoch, batch.after.samples, batch.first_micro_batch};
    for (const auto& micro_batch : batch.micro_batches) {
      seen.indices.emplace_back();
      seen.ordinals.emplace_back();
      for (const LoadedExample& example : micro_batch) {
        seen.indices.back().push_back(example.index);
        seen.ordinals.back().push_back(example.sample_ordinal);
        REQUIRE(example.features == samples.rows[static_cast<std::size_t>(example.index)]);
      }
    }
    all.push_back(std::move(seen));
  }
  if (all.size() < most) CHECK_FALSE(loader.next(batch));  // a further call returns the end again
  return all;
}

// Ordinal → index over all batches.
std::map<std::int64_t, std::int64_t> stream(const std::vector<Seen>& batches) {
  std::map<std::int64_t, std::int64_t> result;
  for (const Seen& batch : batches) {
    for (std::size_t m = 0; m < batch.indices.size(); ++m) {
      for (std::size_t i = 0; i < batch.indices[m].size(); ++i) {
        REQUIRE(result.emplace(batch.ordinals[m][i], batch.indices[m][i]).second);
      }
    }
  }
  return result;
}

LoaderOptions training_options() {
  LoaderOptions options;
  options.batch_examples = 4;
  options.micro_batch_tokens = 50;
  options.seed = 9;
  options.epochs = 3;
  return options;
}

}  // namespace

TEST_CASE("every epoch hands out every example once, in an order of its own", "[data][loader]") {
  const Samples samples(11);
  const auto batches = run(samples, training_options());
  CHECK(batches.size() == 9);  // 33 samples, eight batches of 4 and one of 1
  CHECK(batches.back().examples == 1);
  CHECK(batches[2].epoch == 0);
  CHECK(batches[3].epoch == 1);
  const auto indices = stream(batches);
  REQUIRE(indices.size() == 33);
  std::vector<Ids> epochs(3);
  for (const auto& [ordinal, index] : indices) epochs[static_cast<std::size_t>(ordinal / 11)].push_back(index);
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
  for (Ids& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    CHECK(epoch == Ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  }

  LoaderOptions evaluation = training_options();
  evaluation.shuffle = evaluation.carry_partial = false;
  evaluation.epochs = 1;
  for (const auto& [ordinal, index] : stream(run(samples, evaluation))) CHECK(ordinal == index);
}

TEST_CASE("a run resumed at any batch goes on exactly as if it had not stopped", "[data][loader]") {
  const Samples samples(7);
  for (const bool carry : {true, false}) {
    LoaderOptions options = training_options();
    options.carry_partial = carry;
    const auto whole = run(samples, options);
    REQUIRE(whole.size() >= 3);
    for (std::size_t done = 0; done <= whole.size(); ++done) {
      const std::int64_t position = done == 0 ? 0 : whole[done - 1].after;
      CHECK(run(samples, options, position) == std::vector<Seen>(whole.begin() + static_cast<long>(done), whole.end()));
    }
  }
}

TEST_CASE("reading ahead changes nothing but the time", "[data][loader]") {
  const Samples samples(10);
  LoaderOptions options = training_options();
  options.prefetch_batches = 0;
  const auto expected = run(samples, options);
  for (const std::int64_t ahead : {1, 2, 100}) {
    options.prefetch_batches = ahead;
    CHECK(run(samples, options) == expected);
  }
}

TEST_CASE("ranks take neighbouring micro-batches of every batch, cut as for one rank", "[data][loader]") {
  const Samples samples(9);
  LoaderOptions options = training_options();
  options.batch_examples = 5;
  const auto alone = run(samples, options);
  for (const std::int64_t ranks : {2, 3, 7}) {
    options.ranks = ranks;
    std::map<std::int64_t, std::int64_t> joined;
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      const auto mine = run(samples, options);
      REQUIRE(mine.size() == alone.size());
      for (std::size_t b = 0; b < mine.size(); ++b) {
        CHECK(mine[b].after == alone[b].after);
        CHECK(mine[b].all_examples == alone[b].all_examples);
        // Micro-batches are cut as for one rank; if there are few, some ranks have none.
        const Share own = share_of(std::ssize(alone[b].indices), options.rank, ranks);
        CHECK(mine[b].first_micro_batch == own.begin);
        CHECK(mine[b].indices ==
              std::vector<Ids>(alone[b].indices.begin() + own.begin, alone[b].indices.begin() + own.end));
        CHECK(mine[b].indices.empty() == (mine[b].examples == 0));
      }
      for (const auto& sample : stream(mine)) REQUIRE(joined.insert(sample).second);
    }
    CHECK(joined == stream(alone));
  }
}

TEST_CASE("micro-batches keep the token limit unless one example alone exceeds it", "[data][loader]") {
  const Samples samples(40);
  LoaderOptions options = training_options();
  options.batch_examples = 10;
  for (const std::int64_t limit : {1, 30, 60, 1000, 0}) {
    options.micro_batch_tokens = limit;
    for (const Seen& batch : run(samples, options)) {
      std::int64_t previous = 0;
      for (const Ids& micro_batch : batch.indices) {
        REQUIRE_FALSE(micro_batch.empty());
        std::int64_t tokens = 0;
        for (const std::int64_t index : micro_batch) tokens += samples.tokens(index);
        if (limit > 0) {
          CHECK((tokens <= limit || micro_batch.size() == 1));
          // Greedy: this micro-batch's first example did not fit into the one before.
          if (&micro_batch != &batch.indices.front()) CHECK(previous + samples.tokens(micro_batch.front()) > limit);
        }
        previous = tokens;
      }
      if (limit == 0 || limit == 1000) CHECK(batch.indices.size() == 1);
    }
  }
}

TEST_CASE("a data set smaller than a batch trains over several epochs", "[data][loader]") {
  const Samples samples(3);
  LoaderOptions options = training_options();
  options.batch_examples = 8;
  options.epochs = 0;
  const auto batches = run(samples, options, 0, 3);
  REQUIRE(batches.size() == 3);
  std::vector<int> uses(3, 0);
  for (const auto& [ordinal, index] : stream(batches)) ++uses[static_cast<std::size_t>(index)];
  CHECK(uses == std::vector<int>{8, 8, 8});
  CHECK(batches[1].epoch == 2);

  options.carry_partial = false;
  CHECK(run(samples, options, 0, 2).back().examples == 3);
}

TEST_CASE("options out of range and an empty data set are refused", "[data][loader]") {
  const Samples samples(3), none(0);
  CHECK(error_of([&] { Loader(none.reader, {}); }) ==
        "loader: the data set holds no examples (were all records rejected? see `etc info`)");
  const auto refused = [&](auto&& change, LoaderPosition start = {}) {
    LoaderOptions options;
    change(options);
    return error_of([&] { Loader(samples.reader, options, start); });
  };
  CHECK(refused([](auto& o) { o.batch_examples = 0; }) == "loader: batch_examples: expected 1 or more, got 0");
  CHECK(refused([](auto& o) { o.micro_batch_tokens = -1; }) ==
        "loader: micro_batch_tokens: expected 0 or more, got -1");
  CHECK(refused([](auto& o) { o.ranks = 0; }) == "loader: ranks: expected 1 or more, got 0");
  CHECK(refused([](auto& o) { o.rank = -1; }) == "loader: rank: expected 0 or more, got -1");
  CHECK(refused([](auto& o) { o.rank = 1; }) == "loader: expected a rank below 1 (ranks), got 1");
  CHECK(refused([](auto& o) { o.epochs = -1; }) == "loader: epochs: expected 0 or more, got -1");
  CHECK(refused([](auto& o) { o.epochs = INT64_MAX; }) ==
        "loader: epochs: 9223372036854775807 epochs of 3 examples are too many");
  CHECK(refused([](auto& o) { o.prefetch_batches = -1; }) == "loader: prefetch_batches: expected 0 or more, got -1");
  CHECK(refused([](auto&) {}, {-1}) == "loader: start.samples: expected 0 or more, got -1");
  CHECK(refused([](auto&) {}, {INT64_MAX}) ==
        "loader: start.samples: expected a position in a run, got 9223372036854775807");
}

TEST_CASE("batches per epoch count what starts in one", "[data][loader]") {
  const Samples samples(10);
  const auto count = [&](std::int64_t batch, bool carry) {
    LoaderOptions options;
    options.batch_examples = batch;
    options.carry_partial = carry;
    return Loader(samples.reader, options).batches_per_epoch();
  };
  CHECK(count(5, true) == 2);
  CHECK(count(4, true) == 3);
  CHECK(count(4, false) == 3);
  CHECK(count(20, true) == 1);
}

TEST_CASE("batches by a budget of tokens keep it, use every example once an epoch, and go on from any of them",
          "[data][loader]") {
  const Samples samples(40);
  LoaderOptions options = training_options();
  options.batch_tokens = 150;
  const auto batches = run(samples, options);
  CHECK(std::ssize(batches) == 3 * Loader(samples.reader, options).batches_per_epoch());
  std::vector<Ids> epochs(3);
  for (const auto& [ordinal, index] : stream(batches)) epochs[static_cast<std::size_t>(ordinal / 40)].push_back(index);
  CHECK(epochs[0] != epochs[1]);
  for (Ids& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    REQUIRE(epoch.size() == 40);
    CHECK(std::adjacent_find(epoch.begin(), epoch.end()) == epoch.end());
  }
  bool several = false;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    std::int64_t tokens = 0;
    for (const Ids& micro_batch : batches[b].indices) {
      for (const std::int64_t index : micro_batch) tokens += samples.tokens(index);
    }
    CHECK(tokens <= 150);
    several = several || batches[b].examples > 1;
    // A run resumed here gives the same batches; below, two processes share them.
    if (b % 7 != 3) continue;
    const auto rest = run(samples, options, batches[b].after);
    CHECK(rest == std::vector<Seen>(batches.begin() + static_cast<std::ptrdiff_t>(b) + 1, batches.end()));
  }
  CHECK(several);
  auto both = stream(batches);
  for (options.rank = 0, options.ranks = 2; options.rank < 2; ++options.rank) {
    for (const auto& [ordinal, index] : stream(run(samples, options))) {
      CHECK(both.at(ordinal) == index);
      both.erase(ordinal);
    }
  }
  CHECK(both.empty());
  options = training_options();
  options.batch_tokens = 3;
  CHECK_THROWS_WITH(Loader(samples.reader, options), Contains("expected a budget of at least 4, got 3"));
}

TEST_CASE("an error of the reader thread arrives in next(), again and again", "[data][loader]") {
  const TemporaryFolder folder;
  write_samples(folder / "a.h5", 6);
  const auto reader =
      std::make_shared<const DatasetReader>(std::vector<std::filesystem::path>{folder / "a.h5"}, sample_schema());
  // Truncates the file after it was checked, while the reader holds it open.
  std::filesystem::resize_file(folder / "a.h5", 3000);
  Loader loader(reader, {});
  LoadedBatch batch;
  const std::string message = error_of([&] { loader.next(batch); });
  CHECK_THAT(message, Contains((folder / "a.h5").string() + ":/examples/") && Contains("cannot read"));
  CHECK(error_of([&] { loader.next(batch); }) == message);
}

TEST_CASE("loaders over one reader and over readers of one file work side by side", "[data][loader]") {
  const Samples samples(30);
  const DatasetReader other({samples.folder / "a.h5"}, sample_schema());
  LoaderOptions options = training_options();
  const auto expected = run(samples, options);
  Loader unfinished(samples.reader, options);  // the destructor stops its waiting thread
  std::vector<int> wrong(3, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      Loader loader(samples.reader, options);
      LoadedBatch batch;
      for (const Seen& seen : expected) {
        if (!loader.next(batch) || batch.after.samples != seen.after ||
            batch.micro_batches.front().front().index != seen.indices.front().front())
          ++wrong[t];
      }
    });
  }
  for (std::int64_t i = 0; i < 30; ++i) CHECK(other.read(i) == samples.rows[static_cast<std::size_t>(i)]);
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(3, 0));
}

TEST_CASE("the heaviest micro-batches of a run are found from lengths alone", "[data][loader]") {
  const Samples samples(40);
  LoaderOptions options;
  options.batch_examples = 9;
  options.micro_batch_tokens = 60;
  options.seed = 4;
  constexpr std::int64_t kSamples = 9 * 13;
  const HeaviestMicroBatches heaviest = heaviest_micro_batches(*samples.reader, options, kSamples);
  std::int64_t most_tokens = 0, most_pairs = 0, most_squares = 0;
  std::size_t most_of_a_batch = 0;
  const auto tokens_of = [&](const Ids& indices) {
    std::int64_t sum = 0;
    for (const std::int64_t i : indices) sum += samples.tokens(i);
    return sum;
  };
  const auto pairs_of = [&](const Ids& indices) {
    std::int64_t sum = 0;
    for (const std::int64_t i : indices) {
      const auto at = static_cast<std::size_t>(i);
      sum += samples.reader->lengths("long")[at] * samples.reader->lengths("global")[at];
    }
    return sum;
  };
  const auto squares_of = [&](const Ids& indices) {
    std::int64_t sum = 0;
    for (const std::int64_t i : indices) {
      const std::int64_t length = samples.reader->lengths("long")[static_cast<std::size_t>(i)];
      sum += length * length;
    }
    return sum;
  };
  for (const Seen& seen : run(samples, options, 0, 13)) {
    most_of_a_batch = std::max(most_of_a_batch, seen.indices.size());
    for (const Ids& indices : seen.indices) {
      most_tokens = std::max(most_tokens, tokens_of(indices));
      most_pairs = std::max(most_pairs, pairs_of(indices));
      most_squares = std::max(most_squares, squares_of(indices));
    }
  }
  CHECK(heaviest.most_of_a_batch == static_cast<std::int64_t>(most_of_a_batch));
  CHECK(tokens_of(heaviest.examples.front()) == most_tokens);
  const auto one_has = [&](const auto& weight, std::int64_t most) {
    return std::any_of(heaviest.examples.begin(), heaviest.examples.end(),
                       [&](const Ids& indices) { return weight(indices) == most; });
  };
  CHECK(one_has(pairs_of, most_pairs));
  CHECK(one_has(squares_of, most_squares));
  CHECK(heaviest.examples.size() <= 3);
}

TEST_CASE("pairs of long tokens decide between micro-batches where neither tokens nor other pairs do",
          "[data][loader]") {
  const Samples samples(40);
  const auto sum_of = [&](const Ids& indices, const auto& weight) {
    std::int64_t sum = 0;
    for (const std::int64_t index : indices) {
      const auto at = static_cast<std::size_t>(index);
      sum += weight(samples.reader->lengths("long")[at], samples.reader->lengths("global")[at]);
    }
    return sum;
  };
  const auto tokens = [](std::int64_t l, std::int64_t g) { return l + g; };
  const auto longs = [](std::int64_t l, std::int64_t) { return l; };
  const auto pairs = [](std::int64_t l, std::int64_t g) { return l * g; };
  const auto squares = [](std::int64_t l, std::int64_t) { return l * l; };
  int decided = 0;
  for (const std::int64_t limit : {20, 30, 40, 60, 90}) {
    for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
      CAPTURE(limit, seed);
      LoaderOptions options;
      options.batch_examples = 9;
      options.micro_batch_tokens = limit;
      options.seed = seed;
      std::int64_t most = 0, most_of_others = 0;
      std::array<std::pair<std::int64_t, std::int64_t>, 3> others{};  // weight and squares of the first maximum
      for (const Seen& seen : run(samples, options, 0, 5)) {
        for (const Ids& indices : seen.indices) {
          const std::int64_t own = sum_of(indices, squares);
          most = std::max(most, own);
          const std::array weights = {sum_of(indices, tokens), sum_of(indices, longs), sum_of(indices, pairs)};
          for (std::size_t kind = 0; kind < others.size(); ++kind) {
            if (weights[kind] > others[kind].first) others[kind] = {weights[kind], own};
          }
        }
      }
      for (const auto& [weight, own] : others) most_of_others = std::max(most_of_others, own);
      decided += most > most_of_others ? 1 : 0;
      const HeaviestMicroBatches heaviest = heaviest_micro_batches(*samples.reader, options, 9 * 5);
      CHECK(std::any_of(heaviest.examples.begin(), heaviest.examples.end(),
                        [&](const Ids& indices) { return sum_of(indices, squares) == most; }));
    }
  }
  CHECK(decided > 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("where the system gives no thread the loader reads the same batches itself", "[data][loader]") {
  const Samples samples(7);
  LoaderOptions options;
  options.batch_examples = 2;
  options.epochs = 2;
  std::vector<Seen> alone;
  {
    std::atomic<bool> over = false;
    std::vector<std::thread> others;  // they take the stacks of ended threads, which the loader could use again
    const NoMoreThreads none;
    try {
      while (true) others.emplace_back([&] { over.wait(false); });
    } catch (const std::system_error&) {
    }
    CHECK_NOTHROW(alone = run(samples, options));
    over = true;
    over.notify_all();
    for (std::thread& other : others) other.join();
  }
  CHECK(alone == run(samples, options));
}
#endif
