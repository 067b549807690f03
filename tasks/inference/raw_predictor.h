// Predicts raw records while they are read: into a prediction file, or as one answer per record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "etc_core/base/json.h"
#include "etc_core/comm/communicator.h"
#include "tasks/inference/answer.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/prepare/preparation.h"

namespace etc {

// The destination of the records' predictions: one of the two.
struct PredictionSink {
  Predictions* predictions = nullptr;  // the task's own file and metrics; null in all processes but the first
  std::function<void(const std::string& line)> answers;  // one line per record, in order; empty: not wanted
};

// Predicts the records of raw files. Examples are collected until a window of the file is complete; records of a stream
// are predicted one at a time, so that the writer can read the answer before it sends the next record. An answer is
// RecordAnswer::finish(); for a record that could not be prepared {"id", "record", "error"}.
//
// With several processes the first one reads, prepares and decodes. Collected examples are computed in shares of
// micro-batches, or of records with an answer each; the other processes need no input. If answers are wanted for a
// stream, records come one at a time and the first process computes them alone.
class RawPredictor {
 public:
  // stopped: the message after a stop signal.
  RawPredictor(const Running& running, const prepare::Preparation& preparation, PredictionSink sink,
               std::string stopped, Communicator& processes = one_process())
      : running_(running),
        preparation_(preparation),
        sink_(std::move(sink)),
        stopped_(std::move(stopped)),
        processes_(processes) {}

  // progress: examples predicted so far in all files, bytes read of this one. Faults of records are logged. Throws
  // Error if the file cannot be read to its end, and the exceptions of prediction; Interrupted after a stop signal
  // (Error with several processes, because the others must be told).
  void predict(const std::filesystem::path& input,
               const std::function<void(std::int64_t examples, std::int64_t file_bytes)>& progress);
  // Call after the last predict().
  void finish();

  // The work of the other processes, from the first one's predict() to its finish().
  void help();

  std::int64_t refused() const { return refused_; }  // records without a prediction

 private:
  // A record that was read: its examples are the next ones of waiting_, or it has none.
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

// The faults of a record for which it has no prediction, in one line; "": none.
std::string faults_text(const prepare::Converted& converted);
// Logs that text, if there is one, and returns it.
std::string log_faults(const std::string& where, std::int64_t record, const prepare::Converted& converted);

// The memory for reading and preparing raw records: two windows of the file as text, values and examples
// (data/README.md). For several files that of the largest.
std::int64_t bytes_of_reading(const std::vector<std::string>& inputs);

}  // namespace etc
