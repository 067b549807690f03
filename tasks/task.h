// What a task is to the trainer, the evaluator and the predictor: features in, labels, head, loss, metrics, decoding.
//
// The walk of one micro-batch: examples → feed() → add_to_embeddings() → encoder → head() → loss() while training,
// Predictions::add() while evaluating. The trainer knows nothing else of a task. Which tasks there are is tasks/registry.h's
// matter; tasks/README.md shows how to add one.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/loader/loader.h"
#include "data/readers/record_reader.h"
#include "data/text/tokenizer.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/parameters.h"

namespace etc {

using Examples = std::span<const data::LoadedExample>;

// Logits of one micro-batch in the task's own order and shapes.
using HeadOutput = std::vector<Var>;

// (name, value) in the order they are printed; the first is the one that `best` goes by, larger is better.
using Metrics = std::vector<std::pair<std::string, double>>;

// The results of one pass over a data set: decoded as the micro-batches come, written as they come.
class Predictions {
 public:
  virtual ~Predictions() = default;

  // A row of the data's /gold, where its schema has one. Of prepared data all rows, in order, before the examples; of
  // raw records each before its own examples.
  virtual void add_gold(const data::Example& /*row*/) {}
  // Logits are where the model computed them: who reads all of them takes them to the host (host_logits.h).
  virtual void add(Examples examples, const EncoderInput& input, const HeadOutput& logits) = 0;

  // A record that could not be prepared: it has no logits, but a place in the prediction file or in the metrics where
  // the task's official scores count it. `fault` is one of its rejections.
  virtual void add_rejected(const data::Fault& /*fault*/) {}

  // Over the labelled examples so far. Empty when there were none.
  virtual Metrics metrics() const = 0;

  // Completes the file given at the start, if any; without this call nothing of it remains.
  virtual void finish() = 0;
};

// Which examples of a micro-batch are meant: [first, end).
struct ExampleRange {
  std::size_t first = 0, end = 0;
};

// The answer to one raw record, for whoever asks for records one by one (tasks/inference/).
class RecordAnswer {
 public:
  virtual ~RecordAnswer() = default;
  // The record's examples in order, in one call or in several: those of `own` in a micro-batch that may hold other
  // records' examples, too. Logits where the model computed them.
  virtual void add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) = 0;
  // After the last of them: an object with "id" and the members that tasks/ANSWERS.md lists by task. Places in texts are
  // numbers of Unicode characters, ends exclusive. Throws Error naming the record when a logit is nan or infinite.
  virtual Json finish() = 0;
};

// What one pass over examples is to leave behind.
struct PredictionRequest {
  std::filesystem::path output;         // the prediction file; empty: metrics only; "-": standard output
  std::filesystem::path n_best_output;  // several answers of each example, JSON lines (n_best_file.h); empty: none
  std::int64_t n_best = 0;              // so many
  // {id: how much more the model thinks of no answer than of the best one}; empty: none. Of tasks that write it.
  std::filesystem::path null_odds_output = {};
};

class Task {
 public:
  virtual ~Task() = default;
  virtual const data::Schema& schema() const = 0;

  // Whether answers are written with the data's vocabulary. If so it is given once, before predictions are started.
  virtual bool needs_vocabulary() const { return false; }
  virtual void use_vocabulary(std::shared_ptr<const data::Tokenizer>) {}

  // Encoder input of the examples; label tensors are built here. Throws Error naming `where` (the file), the example's
  // id, the feature and the position when the features contradict each other or the model.
  virtual EncoderInput feed(Examples examples, const std::string& where) const = 0;

  // Adds the head's parameters under their checkpoint names; call once, before head().
  virtual void add_parameters(ParameterSet& parameters) = 0;

  // Puts what the task adds to the token embeddings, functions of its own parameters, into the input.
  virtual void add_to_embeddings(Tape& /*tape*/, Examples /*examples*/, EncoderInput& /*input*/) const {}

  virtual HeadOutput head(Tape& tape, Examples examples, const EncoderStates& states, const EncoderInput& input,
                          const ForwardOptions& options) const = 0;

  // The losses' terms, and how much one example adds to the denominator of each. The trainer sums the counts over the
  // whole optimiser batch before its first micro-batch, so that accumulating gradients equals one big batch.
  virtual std::vector<std::string> loss_terms() const = 0;
  virtual void count(const data::LoadedExample& example, std::span<double> counts) const = 0;

  // Loss of this micro-batch, summed over its terms, each divided by its denominator; puts the gradient into the
  // logits when the tape records.
  virtual double loss(Tape& tape, Examples examples, const EncoderInput& input, HeadOutput& logits,
                      std::span<const double> counts) const = 0;

  virtual std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const = 0;

  // Within count_memory(): allocates what Predictions::add() does of these where that computes with the model, such as a
  // product with a vocabulary or a search, and keeps nothing.
  virtual void count_predictions(Examples /*examples*/, const EncoderInput& /*input*/,
                                 const HeadOutput& /*logits*/) const {}

  // Null: the task's predictions come in files only.
  virtual std::unique_ptr<RecordAnswer> start_answer() const { return nullptr; }

  // Whether answers may be "none" by a threshold, so that there are null odds to write (PredictionRequest).
  virtual bool writes_null_odds() const { return false; }

  // The name of the task's prediction file within a submission to its benchmark; empty: it has none.
  virtual std::string submission_name() const { return {}; }

  // Whether examples are made of a whole text rather than of a record each: raw input cannot be predicted, and prepared
  // examples say enough to be shown.
  virtual bool takes_whole_texts() const { return false; }

  // Of tasks whose examples go on in each other (TaskKind::texts_go_on): whether this one begins a text. If not, it goes
  // on where the example before it in the data set ends, and a model with memory remembers that.
  virtual bool begins_text(const data::LoadedExample& /*example*/) const { return true; }

  // For people: one example's question, what the model thinks of the choices, and the answer in the raw record's text.
  // Input and logits are those of this example alone. Without use for the record in a task of whole texts.
  virtual std::string show(const data::RecordSlice& raw_record, const data::Example& example,
                           const HeadOutput& logits) const = 0;
};

// Field::mark of a key of section `task` that does not touch the weights: also an option of `etc eval` and `etc predict`.
inline constexpr int kDecoding = 1;

// TaskKind::make of a class that is made of these two.
template <typename SomeTask>
std::unique_ptr<Task> made(const Json& section, const EncoderConfig& model) {
  return std::make_unique<SomeTask>(section, model);
}

// What a prediction file is scored with besides gold files, by tasks that ask for more.
struct ScoreOptions {
  Json keys = Json::object();           // given keys of section `task`, all of them the task's and marked kDecoding
  std::filesystem::path baseline = {};  // another prediction file, to compare with; empty: none
};

// The task as its row of tasks/registry.h holds it.
struct TaskKind {
  Fields keys;  // of section `task`, besides its name
  // Reads the section by the keys, UsageError "config: task.<key>: …".
  std::unique_ptr<Task> (*make)(const Json& section, const EncoderConfig& model);
  // Scores a prediction file of the task's official form by raw files with answers: an object with "metrics"
  // (name → number), counts (integers), and tables as the task's evaluate() describes them. Throws Error naming file,
  // place and id on bad files.
  Json (*score)(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold);
  // The same with a file of null odds beside the predictions. Null: the task's scores know none.
  Json (*score_with_odds)(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold,
                          const std::filesystem::path& null_odds) = nullptr;
  // The same as score by keys of section `task` and beside a baseline. Null: the task's scores know neither.
  Json (*score_with)(const std::filesystem::path& predictions, const std::vector<std::filesystem::path>& gold,
                     const ScoreOptions& options) = nullptr;
  // Whether examples go on where those before them in the data set end (Task::begins_text): they are trained on in as
  // many streams as a batch has examples (LoaderOptions::streams).
  bool texts_go_on = false;
};

}  // namespace etc
