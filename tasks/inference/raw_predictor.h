// Raw records through a model as they are read: into a prediction file, or an answer each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "etc_core/comm/communicator.h"
#include "tasks/inference/answer.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/preparation.h"

namespace etc {

// Where the records' predictions go: one of the two.
struct PredictionSink {
  Predictions* predictions = nullptr;  // the task's own file and metrics; null but in the first process
  std::function<void(const std::string& line)> answers;  // of one record, in order, on one line; empty: not wanted
};

// Predicts the records of raw files. Examples wait until a window of the file is done, or, of a stream, are predicted
// one record at a time, so that whoever writes the record can read its answer before the next. An answer:
// RecordAnswer::finish(); of a record that could not be prepared {"id", "record", "error"}.
//
// Of several processes the first one reads, prepares and decodes; what waits in it is computed in shares, of micro-batches
// or of records with an answer each, and the others need no input. A stream with answers wanted gives one record at a time,
// which the first process computes alone.
class RawPredictor {
 public:
  // stopped: what is said after a stop signal.
  RawPredictor(const Running& running, const prepare::Preparation& preparation, PredictionSink sink,
               std::string stopped, Communicator& processes = one_process())
      : running_(running),
        preparation_(preparation),
        sink_(std::move(sink)),
        stopped_(std::move(stopped)),
        processes_(processes) {}

  // progress: examples predicted so far in all files. What is wrong with a record goes to the log. Throws Error where the
  // file cannot be read to its end, and what prediction throws; Interrupted after a stop signal (Error where there are
  // several processes, which must hear of it).
  void predict(const std::filesystem::path& input, const std::function<void(std::int64_t)>& progress);
  // There is no more to predict.
  void finish();

  // What another process than the first does from its predict() to its finish().
  void help();

  std::int64_t refused() const { return refused_; }  // records without a prediction

 private:
  // A record that was read: its examples are the next of waiting_, or it has none.
  struct Record {
    std::size_t examples = 0;
    Json error;  // null: there are examples
  };

  void refuse_repeated(prepare::PassRecord& record);
  void take(prepare::PassRecord&& record);
  void flush();  // outside of parallel loops, so that the model has all threads
  std::vector<ExampleRange> records_with_examples() const;
  std::vector<ExampleRange> micro_batches();
  void send_waiting(const std::vector<ExampleRange>& groups);
  std::vector<ExampleRange> receive_waiting(const std::string& sent);
  void predict_waiting(const std::vector<ExampleRange>& groups, bool shared);
  void answer_waiting(const std::vector<ExampleRange>& groups, bool shared);
  std::string line_of(ExampleRange record);
  std::vector<std::string> shared_lines(const std::vector<ExampleRange>& groups);
  Examples examples_of(ExampleRange range) const;

  Running running_;
  const prepare::Preparation& preparation_;
  PredictionSink sink_;
  std::string stopped_;
  Communicator& processes_;
  std::string where_;  // the file
  std::vector<Record> records_;
  std::vector<data::LoadedExample> waiting_;
  std::vector<data::Fault> refused_records_;
  std::unordered_map<std::string, std::string> first_of_id_;  // where each id was first seen
  std::int64_t done_ = 0, refused_ = 0;
};

// What reading and preparing raw records takes: two windows of the file as text, values and examples (data/README.md).
// Of several files the largest's.
std::int64_t bytes_of_reading(const std::vector<std::string>& inputs);

}  // namespace etc
