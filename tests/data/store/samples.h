// Data sets shared by the tests of store and loader: every kind of feature, small enough to write often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset_info.h"

namespace etc::test {

// Every kind, every stored type, shared and unshared align classes; the names are those of the tasks.
const data::Schema& sample_schema();

// The example of task-wikihop 2.7: 14 long tokens, 9 global tokens, two candidates.
data::Example worked_example();

// Example `i` of an endless sequence of different examples; lists have 0 to about `longest` elements.
data::Example sample_example(std::int64_t i, std::int64_t longest = 30);

data::DatasetInfo sample_info();
data::Fault sample_fault(std::int64_t i);

// Writes a data set of sample_example(first) … with examples/4 faults, and returns the examples.
std::vector<data::Example> write_samples(const std::filesystem::path& path, std::int64_t examples,
                                         std::int64_t first = 0, std::int64_t longest = 30);

// Writes exactly these examples and faults.
void write_examples(const std::filesystem::path& path, const std::vector<data::Example>& examples,
                    const std::vector<data::Fault>& faults = {}, const data::DatasetInfo& info = sample_info());

// The message of the etc::Error that `body` throws, or "no error".
template <typename Body>
std::string error_of(Body&& body);

}  // namespace etc::test

#include "etc_core/base/error.h"

namespace etc::test {

template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace etc::test
