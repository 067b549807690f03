// Speed of the store and the loader on a synthetic data set of WikiHop's size:
//   bench_loader [examples] [long tokens per example]      default 2000 and 1750
// Prints the time to write and to open the file (the probe, a child process, reads everything once), then batches,
// examples and MB per second of shuffled reading for every epoch, in CPU seconds. MB are those of the stored values
// before compression, 12 bytes per long token and 6 per global token. The first epoch decompresses every block; later
// epochs find the blocks in the reader's cache (a sixteenth of the machine's memory) decompressed.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "bench/processor_time.h"
#include "data/dataset.h"
#include "data/dataset_info.h"
#include "data/loader/loader.h"
#include "etc_core/base/error.h"
#include "etc_core/base/random.h"

namespace {

using namespace etc;
using namespace etc::data;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kGlobalTokens = 230, kBatch = 8, kEpochs = 3;

Schema bench_schema() {
  constexpr FeatureKind kText = FeatureKind::string, kList = FeatureKind::ragged;
  return {"wikihop",
          {{"id", kText, StoredType::u8, "", {}, {}},
           {"long_token_ids", kList, StoredType::i32, "long", {}, 0},
           {"long_token_type_ids", kList, StoredType::u8, "long", {}, 0},
           {"long_sentence_ids", kList, StoredType::i16, "long", {}, -1},
           {"long_paragraph_ids", kList, StoredType::i16, "long", {}, -1},
           {"long_paragraph_breakpoints", kList, StoredType::u8, "long", {}, 0},
           {"l2g_linked_ids", kList, StoredType::i16, "long", {}, -1},
           {"global_token_ids", kList, StoredType::i32, "global", {}, 0},
           {"global_token_type_ids", kList, StoredType::u8, "global", {}, 0},
           {"global_paragraph_breakpoints", kList, StoredType::u8, "global", {}, 0},
           {"label_id", FeatureKind::scalar, StoredType::i32, "", -1, {}},
           {"candidates", FeatureKind::strings, StoredType::u8, "candidate", {}, {}}}};
}

// Lengths vary by half around the mean, id frequencies fall off like those of words, and structure ids come in runs, so
// that the data compress like text.
Example bench_example(std::int64_t i, std::int64_t long_tokens) {
  const auto draw = [&](std::uint32_t at) {
    return uniform_from_bits(philox({at, 0, 0, 0}, mix_key(3, static_cast<std::uint64_t>(i)))[0]);
  };
  const auto length = static_cast<std::int64_t>(static_cast<float>(long_tokens) * (0.5f + draw(0))),
             sentence_length = length / 60 + 1;
  const auto list = [](std::int64_t size, auto&& value) {
    Ids values;
    for (std::int64_t t = 0; t < size; ++t) values.push_back(value(t));
    return values;
  };
  const auto token = [&](std::int64_t t) {
    const float u = draw(static_cast<std::uint32_t>(t) + 1);
    return static_cast<std::int64_t>(30522.0f * u * u * u);
  };
  const auto zero = [](std::int64_t) { return std::int64_t{0}; };
  std::vector<std::string> candidates;
  for (int c = 0; c < 19; ++c) candidates.push_back("candidate " + std::to_string(token(c)));
  return {{"id", "WH_train_" + std::to_string(i)},
          {"long_token_ids", list(length, token)},
          {"long_token_type_ids", list(length, [](std::int64_t t) { return std::int64_t{t < 60 ? 4 : 1}; })},
          {"long_sentence_ids", list(length, [&](std::int64_t t) { return t / sentence_length; })},
          {"long_paragraph_ids", list(length, [](std::int64_t t) { return t / 130; })},
          {"long_paragraph_breakpoints", list(length, [](std::int64_t t) { return std::int64_t{t % 130 == 129}; })},
          {"l2g_linked_ids", list(length, [](std::int64_t t) { return t % 97 < 2 ? t % 19 : std::int64_t{-1}; })},
          {"global_token_ids", list(kGlobalTokens, [](std::int64_t t) { return std::int64_t{t < 19 ? 4 : 1}; })},
          {"global_token_type_ids", list(kGlobalTokens, zero)},
          {"global_paragraph_breakpoints", list(kGlobalTokens, zero)},
          {"label_id", std::int64_t{0}},
          {"candidates", candidates}};
}

void measure(std::int64_t examples, std::int64_t long_tokens) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("bench_loader_" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
  struct Remove {
    std::filesystem::path path;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  } const remove{path};

  DatasetInfo info;
  info.task = "wikihop";
  info.split = "train";
  info.vocab_sha256 = std::string(64, '0');
  info.preprocess_config = Json::object();
  double writing = 0;
  {
    DatasetWriter writer(path, bench_schema(), info);
    for (std::int64_t i = 0; i < examples; ++i) {
      const Example example = bench_example(i, long_tokens);
      const double start = bench::processor_seconds();
      writer.append(example);
      writing += bench::processor_seconds() - start;
    }
    const double start = bench::processor_seconds();
    writer.finish({}, examples, 0, 0);
    writing += bench::processor_seconds() - start;
  }
  const double opening = bench::processor_seconds();
  const auto reader = std::make_shared<const DatasetReader>(std::vector<std::filesystem::path>{path}, bench_schema());
  const double opened = bench::processor_seconds() - opening;
  double megabytes = 0;
  for (std::int64_t i = 0; i < examples; ++i) {
    megabytes += 12e-6 * static_cast<double>(reader->lengths("long")[static_cast<std::size_t>(i)]) +
                 6e-6 * static_cast<double>(kGlobalTokens);
  }
  std::printf("%lld examples, %.1f MB of values, %.1f MB in the file\n", static_cast<long long>(examples), megabytes,
              static_cast<double>(std::filesystem::file_size(path)) * 1e-6);
  std::printf("write            %8.2f s  %8.1f MB/s\n", writing, megabytes / writing);
  std::printf("open and check   %8.2f s  %8.1f MB/s\n", opened, megabytes / opened);

  LoaderOptions options;
  options.batch_examples = kBatch;
  options.epochs = kEpochs;
  options.carry_partial = false;
  Loader loader(reader, options);
  LoadedBatch batch;
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const double start = bench::processor_seconds();
    for (std::int64_t b = 0; b < loader.batches_per_epoch(); ++b) {
      if (!loader.next(batch)) fail("bench_loader", "the loader ended early");
    }
    const double time = bench::processor_seconds() - start;
    std::printf("read, epoch %lld    %8.2f s  %8.1f MB/s  %8.1f batches/s of %lld  %8.1f examples/s\n",
                static_cast<long long>(epoch), time, megabytes / time,
                static_cast<double>(loader.batches_per_epoch()) / time, static_cast<long long>(kBatch),
                static_cast<double>(examples) / time);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return etc::bench::bench_main([&] {
    std::int64_t examples = 2000, tokens = 1750;
    etc::bench::read_arguments("bench_loader", argc, argv, {{"examples", &examples}, {"tokens", &tokens}});
    measure(examples, tokens);
  });
}
