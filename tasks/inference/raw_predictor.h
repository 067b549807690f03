// Raw records through a model as they are read: into a prediction file, or an answer each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tasks/inference/answer.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/preparation.h"

namespace etc {

// Where the records' predictions go.
struct PredictionSink {
  Predictions* predictions = nullptr;              // the task's own file and metrics; null: not wanted
  std::function<void(const Json& answer)> answer;  // of one record, in order; empty: not wanted
};

// Predicts the records of raw files. Examples wait until a window of the file is done, or, of a stream, are predicted
// one record at a time, so that whoever writes the record can read its answer before the next. An answer:
// RecordAnswer::finish(); of a record that could not be prepared {"id", "record", "error"}.
class RawPredictor {
 public:
  RawPredictor(const Running& running, const prepare::Preparation& preparation, PredictionSink sink)
      : running_(running), preparation_(preparation), sink_(std::move(sink)) {}

  // progress: examples predicted so far in all files. What is wrong with a record goes to the log. Throws Error where the
  // file cannot be read to its end, and what prediction throws; Interrupted(stopped) after a stop signal.
  void predict(const std::filesystem::path& input, const std::string& stopped,
               const std::function<void(std::int64_t)>& progress);

  std::int64_t refused() const { return refused_; }  // records without a prediction

 private:
  // A record that was read: its examples are the next of waiting_, or it has none.
  struct Record {
    std::size_t examples = 0;
    Json error;  // null: there are examples
  };

  void take(prepare::PassRecord&& record);
  void flush(const std::string& stopped);  // outside of parallel loops, so that the model has all threads

  Running running_;
  const prepare::Preparation& preparation_;
  PredictionSink sink_;
  std::string where_;  // the file
  std::vector<Record> records_;
  std::vector<data::LoadedExample> waiting_;
  std::vector<data::Fault> refused_records_;
  std::int64_t done_ = 0, refused_ = 0;
};

// What reading and preparing raw records takes: two windows of the file as text, values and examples (data/README.md).
// Of several files the largest's.
std::int64_t bytes_of_reading(const std::vector<std::string>& inputs);

}  // namespace etc
