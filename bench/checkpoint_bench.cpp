// The speed of loading checkpoints into parameters, compared with `cat FILE >/dev/null` of the same bytes.
//
//   build/cpu/bench_checkpoint [--preset base] [--repeat 7] [--threads 1,2] [--cpu-time] [--folder DIR]
//
// A checkpoint of the preset's size (base: 663 MB) is generated as safetensors and as a TensorFlow bundle, in a folder
// that is removed at the end. Every line runs in its own process: cat, or this program with --load, so that the peak
// memory is that of the load alone. All run in alternation; files are in the page cache after the first turn, which is
// not counted. The output is the median with smallest and largest value, the share of cat's rate as the median over the
// turns (each compared with the cat of its own turn), and the process's peak memory divided by the file's size. The
// rate of a load is measured from opening the file until the last parameter is filled and checked; that of cat from
// start to exit. --cpu-time measures CPU time instead, divided by the number of threads; on a shared machine it leaves
// out the time of other programs.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "bench/bench_main.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/median.h"
#include "etc_core/base/parallel.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_reader.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_writer.h"
#include "etc_core/checkpoint/convert/tf_etc.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/etc_encoder.h"

namespace {

using namespace etc;
namespace fs = std::filesystem;

struct Options {
  std::string preset = "base";
  int repeat = 7;
  std::vector<int> threads = {1, 2};
  bool cpu_time = false;
  fs::path folder = fs::temp_directory_path();
  std::string load;  // in a child: "safetensors" or "bundle"
};

Options parse(int argc, char** argv) {
  Options options;
  std::string folder = options.folder.string();
  bench::read_arguments("bench_checkpoint", argc, argv,
                        {{"--preset", &options.preset},
                         {"--repeat", &options.repeat},
                         {"--threads", &options.threads},
                         {"--cpu-time", &options.cpu_time},
                         {"--folder", &folder},
                         {"--load", &options.load}});
  options.folder = folder;
  return options;
}

EtcConfig config_of(const Options& options) {
  EtcConfig config = etc_config_preset(options.preset);
  config.vocab_size = 30522;  // of the published base model
  return config;
}

double clock_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// ---- The files. ----

const char* const kWeights = "model.safetensors";
const char* const kBundle = "model.ckpt";

void generate(const EtcConfig& config, const fs::path& folder) {
  ParameterSet parameters;
  const EtcEncoder encoder(config, parameters);
  parameters.initialize(1);
  write_model(folder, Json{{"model", config.to_json()}}, parameters);
  convert::TfBundleWriter bundle;
  for (const auto& parameter : parameters.all()) bundle.add(parameter->name, parameter->value);
  bundle.write(folder / kBundle);
}

// ---- In a child: one load, its wall and processor seconds on standard output. ----

void load(const Options& options) {
  set_thread_count(options.threads.at(0));
  const EtcConfig config = config_of(options);
  const double wall = clock_seconds(CLOCK_MONOTONIC), processor = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  ParameterSet parameters;
  if (options.load == "bundle") {
    convert::TfEtcExtras extras;
    convert::read_tf_etc(*convert::open_tensors(options.folder / kBundle), config, {}, parameters, extras);
  } else {
    const EtcEncoder encoder(config, parameters);
    load_parameters(options.folder / kWeights, parameters);
  }
  std::printf("%.6f %.6f\n", clock_seconds(CLOCK_MONOTONIC) - wall,
              clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - processor);
  std::fflush(stdout);
  ::_exit(0);  // freeing the memory is not part of a load
}

// ---- In the parent. ----

struct Run {
  double seconds = 0;
  double peak_bytes = 0;
};

// Runs a command to its end with its output in a file.
Run run_command(const std::vector<std::string>& command, const fs::path& output, bool cpu_time) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const double start = clock_seconds(CLOCK_MONOTONIC);
  const pid_t child = ::fork();
  if (child < 0) fail("bench_checkpoint", "cannot fork");
  if (child == 0) {
    if (::dup2(::open(output.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), 1) < 0) ::_exit(126);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  int status = 0;
  struct rusage usage {};
  ::wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("bench_checkpoint", "{} failed", command[0]);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  const double processor = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return {cpu_time ? processor : clock_seconds(CLOCK_MONOTONIC) - start, static_cast<double>(usage.ru_maxrss) * 1024};
}

struct Line {
  std::string name;
  double bytes;  // of the file
  std::function<Run()> run;
  std::vector<Run> runs;
  std::size_t cat;  // index of the cat of the same file

  double rate(std::size_t turn) const { return bytes / runs[turn].seconds / 1e9; }
};

void measure(const Options& options, const fs::path& folder, int threads) {
  const fs::path output = folder / "output";
  std::vector<Line> lines;
  const auto add = [&](const std::string& kind, const fs::path& file) {
    const auto bytes = static_cast<double>(fs::file_size(file));
    const std::size_t cat = lines.size();
    lines.push_back({"cat " + file.filename().string() + " >/dev/null",
                     bytes,
                     [=, &options] {
                       return run_command({"cat", file.string()}, "/dev/null", options.cpu_time);
                     },
                     {},
                     cat});
    const std::vector<std::string> command = {
        "/proc/self/exe",        "--load",   kind,           "--preset", options.preset, "--threads",
        std::to_string(threads), "--folder", folder.string()};
    lines.push_back({kind + ", read and checked",
                     bytes,
                     [=, &options] {
                       Run result = run_command(command, output, false);
                       double wall = 0, processor = 0;
                       std::FILE* file_of_times = std::fopen(output.c_str(), "r");
                       const bool read =
                           file_of_times != nullptr && std::fscanf(file_of_times, "%lf %lf", &wall, &processor) == 2;
                       if (file_of_times != nullptr) std::fclose(file_of_times);
                       if (!read) fail("bench_checkpoint", "a load printed no times");
                       result.seconds = options.cpu_time ? processor / threads : wall;
                       return result;
                     },
                     {},
                     cat});
  };
  add("safetensors", folder / kWeights);
  add("bundle", convert::shard_path(folder / kBundle, 0, 1));
  for (int turn = -1; turn < options.repeat; ++turn) {
    for (Line& line : lines) {
      const Run run = line.run();
      if (turn >= 0) line.runs.push_back(run);
    }
  }
  std::printf("%d thread%s%s\n", threads, threads == 1 ? "" : "s", options.cpu_time ? ", processor time" : "");
  for (const Line& line : lines) {
    std::vector<double> rates, shares, peaks;
    for (std::size_t turn = 0; turn < line.runs.size(); ++turn) {
      rates.push_back(line.rate(turn));
      shares.push_back(line.rate(turn) / lines[line.cat].rate(turn));
      peaks.push_back(line.runs[turn].peak_bytes / line.bytes);
    }
    const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
    std::printf("  %-44s %6.2f GB/s (%.2f to %.2f)  %5.0f %%", line.name.c_str(), median(rates), *low, *high,
                100 * median(shares));
    const bool is_cat = &line == &lines[line.cat];
    std::printf(is_cat ? "\n" : "  peak %.2f of the file\n", *std::max_element(peaks.begin(), peaks.end()));
  }
}

void run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  if (!options.load.empty()) return load(options);
  std::string pattern = (options.folder / "bench_checkpoint.XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    fail("bench_checkpoint", "cannot make a folder in {}", options.folder.string());
  const fs::path folder = pattern;
  struct Remove {
    const fs::path& folder;
    ~Remove() { fs::remove_all(folder); }
  } remove{folder};
  generate(config_of(options), folder);
  std::printf("preset %s: %.0f MB\n", options.preset.c_str(),
              static_cast<double>(fs::file_size(folder / kWeights)) / 1e6);
  for (const int threads : options.threads) measure(options, folder, threads);
}

}  // namespace

int main(int argc, char** argv) {
  return etc::bench::bench_main([&] { run(argc, argv); });
}
