// A small run in a process of its own, and all its results that must not depend on interruptions of that process.
#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "etc_core/base/cpu_features.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/wikihop/examples.h"

namespace etc::test {

// Options of a model of two layers with two heads.
inline std::vector<std::string> two_layers(const std::string& hidden_size, const std::string& intermediate_size) {
  return {"--hidden-size",         hidden_size, "--num-hidden-layers", "2",
          "--num-attention-heads", "2",         "--intermediate-size", intermediate_size};
}

// A run of `steps` steps that saves after every `save_every` steps, with dropout, residual scores and evaluations; in
// bf16 if possible.
inline std::vector<std::string> training_command(const std::filesystem::path& folder, const std::string& run,
                                                 const std::string& steps = "24", const std::string& save_every = "1") {
  std::vector<std::string> words = {program().value(), "train"};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  add({"--task", "wikihop", "--data", folder / "train.h5", "--eval-data", folder / "dev.h5", "--output", folder / run});
  const std::vector<std::string> sizes = two_layers("16", "32");
  words.insert(words.end(), sizes.begin(), sizes.end());
  add({"--vocab-size", "64", "--local-radius", "4", "--relative-pos-max-distance", "4"});
  add({"--relative-vocab-size", "12", "--use-residual-attention", "--batch-size", "4", "--steps", steps});
  add({"--micro-batch-tokens", "60", "--learning-rate", "0.003", "--save-every", save_every, "--eval-every", "5"});
  add({"--log-every", "1", "--threads", "1"});
  if (cpu_offers(ComputeType::bf16)) add({"--compute", "bf16"});
  return words;
}

inline void write_data(const std::filesystem::path& folder) {
  write_readable_dataset(folder / "train.h5", 0, 30);
  write_readable_dataset(folder / "dev.h5", 500, 10);
}

// The events of an events file: the data of its records, without checksums.
inline std::vector<std::string> events_of(const std::string& bytes) {
  std::vector<std::string> events;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < 8; ++i)
      length |= std::uint64_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
    events.push_back(bytes.substr(at + 12, length));
    at += 16 + length;
  }
  return events;
}

// A run's events files in the order of their names, in which readers take them.
inline std::vector<std::filesystem::path> events_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The steps of the scalars in all events files of a folder, one file after the other.
inline std::vector<std::uint64_t> event_steps(const std::filesystem::path& folder) {
  std::vector<std::uint64_t> steps;
  for (const auto& file : events_files(folder)) {
    for (const std::string& event : events_of(read_file(file))) {
      std::uint64_t step = 0;
      std::size_t at = 10;  // after the time and the step's key
      for (int shift = 0;; shift += 7, ++at) {
        step |= std::uint64_t{static_cast<unsigned char>(event.at(at) & 0x7f)} << shift;
        if ((event[at] & 0x80) == 0) break;
      }
      if (event.at(at + 1) == '\x2a') steps.push_back(step);  // a summary
    }
  }
  return steps;
}

// Everything that must not depend on interruptions: weights, the whole state, the metrics without time and speed,
// and the steps of the events.
inline std::string bits_of(const std::filesystem::path& run) {
  std::string bits;
  for (const char* file : {"last/model.safetensors", "last/state.safetensors", "best/model.safetensors"}) {
    bits += read_file(run / file);
  }
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    Json entry = Json::parse(line);
    for (const char* key : {"time", "examples_per_second", "tokens_per_second", "peak_memory_bytes"}) entry.erase(key);
    bits += json_line(entry) + "\n";
  }
  for (const std::uint64_t step : event_steps(run)) bits += std::to_string(step) + " ";
  return bits;
}

}  // namespace etc::test
