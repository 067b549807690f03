// Speed of reading a raw dataset on one thread, next to simdjson alone on the same file:
//   bench_json FILE [repeat]        FILE: one JSON array, or JSON lines (*.jsonl), plain; default 3 repeats
// Three lines, in MB of the file per CPU second: simdjson alone parses an array in one call (its memory is a multiple
// of the file's), or lines one by one; our scanner splits the file into records; our reader splits and parses them
// (simdjson per record, then JSON values that outlive it, every key visited). They run in alternation; the output is
// the median with the slowest and the fastest.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "bench/json_pass.h"
#include "bench/processor_time.h"
#include "data/readers/json_record.h"
#include "etc_core/base/error.h"
#include "etc_core/base/median.h"

namespace {

using namespace etc;

std::int64_t read_records(const std::filesystem::path& path, data::RecordLayout layout, bool parse) {
  data::ByteStream stream(path);
  data::RecordSlicer slicer(stream, layout);
  data::RecordSlice slice;
  std::int64_t count = 0;
  for (; slicer.next(slice); ++count) {
    if (parse) data::parse_record(slice);
  }
  return count;
}

struct Line {
  const char* name;
  std::function<std::int64_t()> pass;  // returns the number of records
  std::vector<double> seconds;
};

void run(const std::filesystem::path& path, int repeat) {
  const auto layout = path.extension() == ".jsonl" ? data::RecordLayout::lines : data::RecordLayout::array;
  std::vector<Line> lines = {{"simdjson alone", [&] { return bench::json_pass(path, layout); }, {}},
                             {"cut into records", [&] { return read_records(path, layout, false); }, {}},
                             {"cut and parsed", [&] { return read_records(path, layout, true); }, {}}};
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  const std::int64_t records = lines.front().pass();  // brings the file into the page cache
  for (int turn = 0; turn < repeat; ++turn) {
    for (Line& line : lines) {
      const double begin = bench::processor_seconds();
      if (line.pass() != records) fail("bench_json", "{}: expected {} records as simdjson counts", line.name, records);
      line.seconds.push_back(bench::processor_seconds() - begin);
    }
  }
  for (Line& line : lines) {
    std::sort(line.seconds.begin(), line.seconds.end());
    const double seconds = median(line.seconds);
    std::printf("%-18s %8.1f MB/s (%.1f to %.1f), %.0f records/s\n", line.name, megabytes / seconds,
                megabytes / line.seconds.back(), megabytes / line.seconds.front(),
                static_cast<double>(records) / seconds);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return etc::bench::bench_main([&] {
    std::string file;
    int repeat = 3;
    etc::bench::read_arguments("bench_json", argc, argv, {{"file", &file, true}, {"repeat", &repeat}});
    run(file, repeat);
  });
}
