#include "tasks/prepare/forecast.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "data/readers/byte_stream.h"
#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/log_receiver.h"
#include "etc_core/base/memory_ledger.h"
#include "etc_core/base/out_of_memory.h"
#include "tasks/prepare/inputs.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/train/stop_signal.h"

namespace etc::prepare {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

// Where the beginning of an input ends: at the first of these limits that is reached, or at its end.
struct Cut {
  std::int64_t bytes = kAll, lines = kAll;
  bool whole_lines = false;  // with a limit in bytes: after the last complete line, however much is left out
};

struct Beginning {
  std::int64_t bytes = 0, lines = 0;  // that were copied
  bool whole = false;                 // the whole input was copied
  double packing = 1;                 // uncompressed bytes per byte of the file
};

// How many of the bytes [begin, begin + size) lie before the end of line `most`; counts the lines in them.
std::size_t before_line_end(const char* begin, std::size_t size, std::int64_t& lines, std::int64_t most) {
  const char *at = begin, *const end = begin + size;
  while (lines < most && at != end) {
    const char* const line_end = std::find(at, end, '\n');
    if (line_end == end) return size;
    ++lines;
    at = line_end + 1;
  }
  return static_cast<std::size_t>(at - begin);
}

// Copies the beginning of an input, uncompressed, to a file. With a limit in bytes it ends after a complete line if
// that leaves out little; a single long array of records is cut anywhere, and the record at the cut is lost.
Beginning copy_beginning(const fs::path& input, const Cut& cut, const fs::path& to) {
  constexpr std::size_t kBlock = 1 << 20;
  data::ByteStream stream(input);
  std::string text;
  std::vector<char> block(kBlock);
  Beginning found;
  while (std::ssize(text) < cut.bytes && found.lines < cut.lines) {
    const std::size_t size = stream.read(block.data(), block.size());
    found.whole = size == 0;
    if (found.whole) break;
    text.append(block.data(), before_line_end(block.data(), size, found.lines, cut.lines));
  }
  if (!text.empty()) found.packing = static_cast<double>(text.size()) / static_cast<double>(stream.position());
  if (!found.whole) {
    if (std::ssize(text) > cut.bytes) text.resize(static_cast<std::size_t>(cut.bytes));
    const std::size_t lines_end = text.rfind('\n') + 1;  // 0: no line end
    if (lines_end > 0 && (cut.whole_lines || text.size() - lines_end <= text.size() / 4)) text.resize(lines_end);
    found.lines = std::count(text.begin(), text.end(), '\n');
  }
  found.bytes = std::ssize(text);
  write_file_atomically(to, text);
  return found;
}

void check(const Preparation& preparation, const RunOptions& options) {
  if (options.inputs.empty()) fail_usage("etc prepare", "expected at least one input file");
  check_files(preparation, files_of(options));
  for (const fs::path& input : files_of(options)) {
    if (!is_stream(input)) continue;
    fail_usage("etc prepare", "input {}: --forecast reads the beginning of each input: expected a file, got a stream",
               input.string());
  }
}

// Copies of the inputs' beginnings, and the sizes of the inputs.
struct Sample {
  RunOptions options = {};  // for a run over the copies
  // Bytes of each copy, and of each input, uncompressed; compressed inputs are assumed to have the compression ratio of
  // the sample.
  std::vector<double> copied = {}, inputs = {};
  PartsRoom parts = {};  // space that the run takes for parts

  std::int64_t bytes() const { return static_cast<std::int64_t>(sum(copied)); }
  std::int64_t of_bytes() const { return std::max(bytes(), static_cast<std::int64_t>(sum(inputs))); }

  // The space for parts that the run over all inputs needs: for all but the last, or for all.
  std::int64_t bytes_of_all_parts() const {
    const double sampled = sum({copied.data(), parts.inputs});
    const std::size_t without = copied.size() - parts.inputs;
    return sampled == 0 ? 0
                        : static_cast<std::int64_t>(static_cast<double>(parts.bytes) / sampled *
                                                    sum({inputs.data(), inputs.size() - without}));
  }

 private:
  static double sum(std::span<const double> numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }
};

Sample make_sample(const RunOptions& options, std::int64_t bytes, const fs::path& folder) {
  Sample sample{options};
  sample.options.inputs.clear();
  sample.options.targets.clear();
  sample.options.output = folder / "output.h5";
  sample.options.report = folder / "report.jsonl";
  sample.options.strict = false;
  const std::int64_t most_of_one = options.inputs.size() > 1 ? bytes / 2 : bytes;
  double stored = 0;  // size of the files that the sample contains a part of
  for (std::size_t i = 0; i < options.inputs.size() && sample.bytes() < bytes; ++i) {
    const auto size = static_cast<double>(fs::file_size(options.inputs[i]));
    // Faults of records name their file without its folder, so the copy keeps the file's name.
    const fs::path copy = folder / fmt::format("input{}", i) / options.inputs[i].filename();
    const Cut cut{.bytes = most_of_one, .whole_lines = !options.targets.empty()};
    const Beginning beginning = copy_beginning(options.inputs[i], cut, copy);
    sample.options.inputs.push_back(copy);
    sample.copied.push_back(static_cast<double>(beginning.bytes));
    stored += size;
    sample.inputs.push_back(beginning.whole ? sample.copied.back() : beginning.packing * size);
    if (options.targets.empty()) continue;
    const fs::path target = folder / fmt::format("target{}", i) / options.targets[i].filename();
    copy_beginning(options.targets[i], beginning.whole ? Cut{} : Cut{.lines = beginning.lines}, target);
    sample.options.targets.push_back(target);
  }
  const double packing = stored > 0 ? std::accumulate(sample.inputs.begin(), sample.inputs.end(), 0.0) / stored : 1;
  for (std::size_t i = sample.inputs.size(); i < options.inputs.size(); ++i) {
    sample.inputs.push_back(packing * static_cast<double>(fs::file_size(options.inputs[i])));
  }
  return sample;
}

// Rewrites a message about the copies to name the inputs, which the user knows.
std::string about_inputs(std::string message, const RunOptions& options, const RunOptions& copies) {
  const auto replace = [&](const fs::path& copy, const std::string& by) {
    for (std::size_t at = 0; (at = message.find(copy.string(), at)) != std::string::npos; at += by.size()) {
      message.replace(at, copy.string().size(), by);
    }
  };
  for (std::size_t i = 0; i < copies.inputs.size(); ++i) replace(copies.inputs[i], options.inputs[i].string());
  for (std::size_t i = 0; i < copies.targets.size(); ++i) replace(copies.targets[i], options.targets[i].string());
  replace(copies.report, "the report, without --forecast");
  return message;
}

Counts run_over_copies(const Preparation& preparation, const RunOptions& options, const RunOptions& copies) {
  const auto own = [&](const Error& error) { return about_inputs(error.what(), options, copies); };
  try {
    return run(preparation, copies);
  } catch (const Interrupted&) {
    // Omits what the run says about its parts: those of the copies are not kept.
    throw Interrupted(std::string("prepare: forecast stopped by ") + StopSignal::name());
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(own(error));
  } catch (const UsageError& error) {
    throw UsageError(own(error));
  } catch (const Error& error) {
    throw Error(own(error));
  }
}

}  // namespace

Forecast forecast(const Preparation& preparation, const RunOptions& options, std::int64_t sample_bytes) {
  check(preparation, options);
  const AtomicFolder folder(fs::temp_directory_path() / "etc_prepare_forecast", OldFiles::drop);
  Sample sample = make_sample(options, sample_bytes, folder.path());
  sample.options.parts_room = &sample.parts;
  const ProgressReceiver unseen([](const ProgressReport&) {});
  memory_ledger::reset_peak();
  reset_process_peak();
  const auto start = std::chrono::steady_clock::now();
  const Counts counts = run_over_copies(preparation, options, sample.options);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  if (counts.records == 0) {
    fail("etc prepare", "expected a record in the first {} bytes of the input, found none", sample.bytes());
  }
  Forecast expected;
  expected.memory = measured_memory(Device::cpu);
  expected.sample = {sample.bytes(), counts.records, counts.examples};
  const double times = static_cast<double>(sample.of_bytes()) / static_cast<double>(sample.bytes());
  const auto of_all = [&](auto value) { return static_cast<std::int64_t>(times * static_cast<double>(value)); };
  expected.all = {sample.of_bytes(), of_all(counts.records), of_all(counts.examples)};
  expected.output_bytes = of_all(fs::file_size(sample.options.output));
  expected.disk_bytes =
      expected.output_bytes + of_all(fs::file_size(sample.options.report)) + sample.bytes_of_all_parts();
  expected.seconds = times * taken.count();
  expected.memory.beside += preparation.kept_bytes(expected.all) - preparation.kept_bytes(expected.sample);
  return expected;
}

}  // namespace etc::prepare
