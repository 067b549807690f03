// Checks for the generated records of every task.
#pragma once

#include <initializer_list>
#include <string>

#include "data/sample/before_record.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "tasks/prepare/run.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace etc::test {

template <typename Options>
using WriteSample = void (*)(const Options& options, const std::filesystem::path& folder,
                             const data::BeforeRecord& before_record);

// Writes folders a, b and, with another seed, c: a and b are equal, and c has other records.
template <typename Options>
void check_equal_seeds(Options options, WriteSample<Options> write, const TemporaryFolder& folder,
                       const std::string& extension) {
  write(options, folder / "a", data::nothing_before);
  write(options, folder / "b", data::nothing_before);
  options.seed += 1;
  write(options, folder / "c", data::nothing_before);
  const std::string train = "train" + extension;
  for (const std::string& name : {train, "dev" + extension, std::string("vocab.txt")}) {
    CAPTURE(name);
    CHECK(read_file(folder / "a" / name) == read_file(folder / "b" / name));
  }
  CHECK(read_file(folder / "a" / train) != read_file(folder / "c" / train));
}

// Bad options are refused before anything is written; a folder that cannot be created is an error of another kind.
template <typename Options>
void check_refused_options(WriteSample<Options> write, const Options& good, std::initializer_list<Options> bad) {
  const TemporaryFolder folder;
  for (const Options& options : bad) {
    CHECK_THROWS_AS(write(options, folder / "out", data::nothing_before), UsageError);
    CHECK_FALSE(std::filesystem::exists(folder / "out"));
  }
  CHECK_THROWS_AS(write(good, "/proc/none", data::nothing_before), Error);
}

// Prepares a generated file of the folder into its out.h5.
inline prepare::Counts prepare_sample(const prepare::Preparation& preparation, const TemporaryFolder& folder,
                                      const std::string& split, const std::string& extension) {
  prepare::RunOptions run;
  run.inputs = {folder / (split + extension)};
  run.output = folder / "out.h5";
  run.report = folder / "report.jsonl";
  run.split = split;
  return prepare::run(preparation, run);
}

}  // namespace etc::test
