// Speed of a tokenizer and optionally of a sentence splitter on one thread.
//
//   bench_text --vocab vocab.txt --input documents.txt [--splitter icu] [--repeat 5]
//
// Every line of the input is a document. Each repeat processes all of them; the output is the median and the spread,
// per CPU second.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "bench/processor_time.h"
#include "data/text/sentence_splitter.h"
#include "data/text/tokenizer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/median.h"

namespace {

using namespace etc;

struct Options {
  std::string vocab, input, splitter;
  int repeat = 5;
};

Options parse(int argc, char** argv) {
  Options options;
  bench::read_arguments("bench_text", argc, argv,
                        {{"--vocab", &options.vocab, true},
                         {"--input", &options.input, true},
                         {"--splitter", &options.splitter},
                         {"--repeat", &options.repeat}});
  return options;
}

// Runs pass() over all documents `repeat` times after one warm-up; pass() returns a count of its results to print.
void measure(const char* name, std::size_t bytes, std::size_t documents, int repeat,
             const std::function<std::int64_t()>& pass) {
  std::vector<double> seconds;
  const std::int64_t produced = pass();
  for (int i = 0; i < repeat; ++i) {
    const double begin = bench::processor_seconds();
    if (pass() != produced) fail(name, "two passes differ");
    seconds.push_back(bench::processor_seconds() - begin);
  }
  std::sort(seconds.begin(), seconds.end());
  const double middle = median(seconds);
  std::printf("%s: %.1f MB/s (%.1f to %.1f), %.0f documents/s, %lld produced\n", name,
              static_cast<double>(bytes) / middle / 1e6, static_cast<double>(bytes) / seconds.back() / 1e6,
              static_cast<double>(bytes) / seconds.front() / 1e6, static_cast<double>(documents) / middle,
              static_cast<long long>(produced));
}

void run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::string text = read_file(options.input);
  std::vector<std::string_view> documents;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    documents.push_back(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  const auto tokenizer = data::load_tokenizer(options.vocab);
  measure(tokenizer->kind(), text.size(), documents.size(), options.repeat, [&] {
    std::int64_t ids = 0;
    for (const std::string_view document : documents) {
      ids += static_cast<std::int64_t>(tokenizer->encode_ids(document).size());
    }
    return ids;
  });
  if (options.splitter.empty()) return;
  const auto splitter = data::load_splitter(options.splitter);
  measure(splitter->name().c_str(), text.size(), documents.size(), options.repeat, [&] {
    std::int64_t sentences = 0;
    for (const std::string_view document : documents) {
      sentences += static_cast<std::int64_t>(splitter->split(document).size());
    }
    return sentences;
  });
}

}  // namespace

int main(int argc, char** argv) {
  return etc::bench::bench_main([&] { run(argc, argv); });
}
