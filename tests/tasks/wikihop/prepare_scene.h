// A folder in which tests run `etc prepare` as a program.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "etc_core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/train/program.h"
#include "tests/tasks/wikihop/small_records.h"

namespace etc::test {

using Words = std::vector<std::string>;

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kMemoryMeansSomething = false;  // the sanitizer keeps freed memory
#else
inline constexpr bool kMemoryMeansSomething = true;
#endif

// A folder with the small vocabulary and one file of records.
class Scene {
 public:
  Scene() {
    write("vocab.txt", small_vocabulary());
    write("in.json", array_of_small_records(0, 3));
  }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const { write_file(at(name), text); }
  bool exists(const std::string& name) const { return std::filesystem::exists(at(name)); }
  std::string bytes(const std::string& name) const { return read_file(at(name)); }

  // The command line, with defaults for options that are not in `extra`.
  Words arguments(const Words& extra) const {
    Words all = {"prepare"};
    const Words defaults = {"--task",      "wikihop", "--split",       "train",    "--input",
                            at("in.json"), "--vocab", at("vocab.txt"), "--output", at("out.h5")};
    for (std::size_t i = 0; i < defaults.size(); i += 2) {
      if (std::find(extra.begin(), extra.end(), defaults[i]) != extra.end()) continue;
      all.insert(all.end(), {defaults[i], defaults[i + 1]});
    }
    all.insert(all.end(), extra.begin(), extra.end());
    return all;
  }

  Result prepare(const Words& extra = {}) const { return run_program(arguments(extra), folder_.path()); }

  // Prepares this text and checks the exit code.
  Result prepare_text(const std::string& text, int code, const Words& extra = {}) const {
    write("in.json", text);
    const Result result = prepare(extra);
    CAPTURE(result.out, result.err);
    CHECK(result.code == code);
    return result;
  }

  // Names in the folder other than the files of the test, sorted.
  Words written() const {
    Words names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename();
      if (name.starts_with("out.h5")) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  TemporaryFolder folder_;
};

inline const Words kWhole = {"out.h5", "out.h5.rejects.jsonl"};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A run that must not begin: exit code, parts of the message, nothing written.
inline void check_refused(const Scene& scene, const Words& extra, int code, const Words& parts) {
  const Result result = scene.prepare(extra);
  CAPTURE(extra, result.out, result.err);
  CHECK(result.code == code);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(has(result.err, part));
  }
  CHECK(scene.written().empty());
}

inline bool without_program() {
  if (program()) return false;
  skip("ETC_PROGRAM is not set");
  return true;
}

}  // namespace etc::test
