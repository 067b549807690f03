// The interface of a task for the trainer, the evaluator and the predictor: features in, labels, head, loss, metrics,
// decoding.
//
// Flow of one micro-batch: examples → feed() → add_to_embeddings() → encoder → head() → loss() while training,
// Predictions::add() while evaluating. The trainer knows nothing else of a task. tasks/registry.h lists the tasks;
// tasks/README.md shows how to add one.
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
#include "etc_core/base/json_fwd.h"
#include "etc_core/nn/encoder.h"
#include "etc_core/nn/encoder_config.h"
#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/parameters.h"

namespace etc {

using Examples = std::span<const data::LoadedExample>;

// Logits of one micro-batch in the task's own order and shapes.
using HeadOutput = std::vector<Var>;

// (name, value) in the order they are printed; `best` is chosen by the first one, larger is better.
using Metrics = std::vector<std::pair<std::string, double>>;

// The results of one pass over a data set: decoded and written micro-batch by micro-batch.
class Predictions {
 public:
  virtual ~Predictions() = default;

  // A row of the data's /gold, if its schema has one. For prepared data all rows come in order before the examples; for
  // raw records each row comes before its own examples.
  virtual void add_gold(const data::Example& /*row*/) {}
  // Logits are where the model computed them; an implementation that reads all of them copies them to the host
  // (host_logits.h).
  virtual void add(Examples examples, const EncoderInput& input, const HeadOutput& logits) = 0;

  // A record that could not be prepared: it has no logits, but the task's official scores may require an entry for it
  // in the prediction file or in the metrics. `fault` is one of its rejections.
  virtual void add_rejected(const data::Fault& /*fault*/) {}

  // Over the labelled examples so far. Empty when there were none.
  virtual Metrics metrics() const = 0;

  // Completes the file given at the start, if any; without this call the file is discarded.
  virtual void finish() = 0;
};

// A range of the examples of a micro-batch: [first, end).
struct ExampleRange {
  std::size_t first = 0, end = 0;
};

// The answer to one raw record, for callers that process records one by one (tasks/inference/).
class RecordAnswer {
 public:
  virtual ~RecordAnswer() = default;
  // The record's examples in order, in one or several calls: the range `own` of a micro-batch that may also hold
  // examples of other records. Logits are where the model computed them.
  virtual void add(Examples examples, const EncoderInput& input, const HeadOutput& logits, ExampleRange own) = 0;
  // After the last examples: an object with "id" and the members that tasks/ANSWERS.md lists by task. Positions in
  // texts are numbers of Unicode characters, ends exclusive. Throws Error naming the record when a logit is NaN or
  // infinite.
  virtual Json finish() = 0;
};

// The output requested from one pass over examples.
struct PredictionRequest {
  std::filesystem::path output;         // the prediction file; empty: metrics only; "-": standard output
  std::filesystem::path n_best_output;  // several answers of each example, JSON lines (n_best_file.h); empty: none
  std::int64_t n_best = 0;              // how many; 0: as many as is usual for the task
  // {id: how much higher the model scores no answer than the best one}; empty: none. Only for tasks that write it.
  std::filesystem::path null_odds_output = {};
};

class Task {
 public:
  virtual ~Task() = default;
  virtual const data::Schema& schema() const = 0;

  // Whether answers are written with the data's vocabulary. If so, it is set once, before predictions are started.
  virtual bool needs_vocabulary() const { return false; }
  virtual void use_vocabulary(std::shared_ptr<const data::Tokenizer>) {}

  // Encoder input of the examples; label tensors are built here. Throws Error naming `where` (the file), the example's
  // id, the feature and the position when the features contradict each other or the model.
  virtual EncoderInput feed(Examples examples, const std::string& where) const = 0;

  // Adds the head's parameters under their checkpoint names; call once, before head().
  virtual void add_parameters(ParameterSet& parameters) = 0;

  // Adds to the input what the task contributes to the token embeddings, computed from its own parameters.
  virtual void add_to_embeddings(Tape& /*tape*/, Examples /*examples*/, EncoderInput& /*input*/) const {}

  virtual HeadOutput head(Tape& tape, Examples examples, const EncoderStates& states, const EncoderInput& input,
                          const ForwardOptions& options) const = 0;

  // The terms of the loss, and how much one example adds to the denominator of each. The trainer sums the counts over
  // the whole optimiser batch before its first micro-batch, so that gradient accumulation equals one big batch.
  virtual std::vector<std::string> loss_terms() const = 0;
  virtual void count(const data::LoadedExample& example, std::span<double> counts) const = 0;

  // Loss of this micro-batch, summed over its terms, each divided by its denominator. When the tape records, the
  // gradient overwrites the logits.
  virtual double loss(Tape& tape, Examples examples, const EncoderInput& input, HeadOutput& logits,
                      std::span<const double> counts) const = 0;

  virtual std::unique_ptr<Predictions> start_predictions(const PredictionRequest& request) const = 0;

  // Within count_memory(): allocates what Predictions::add() would allocate for these examples if it computes with the
  // model (a product with the vocabulary, a search), and keeps nothing.
  virtual void count_predictions(Examples /*examples*/, const EncoderInput& /*input*/,
                                 const HeadOutput& /*logits*/) const {}

  // Null: the task supports prediction files only.
  virtual std::unique_ptr<RecordAnswer> start_answer() const { return nullptr; }

  // Whether answers may be "none" by a threshold, so that null odds can be written (PredictionRequest).
  virtual bool writes_null_odds() const { return false; }

  // The name of the task's prediction file within a submission to its benchmark; empty: it has none.
  virtual std::string submission_name() const { return {}; }

  // Whether examples are made from a whole text rather than one record each. Then raw input cannot be predicted, and
  // the prepared examples suffice for show().
  virtual bool takes_whole_texts() const { return false; }

  // For tasks whose examples continue each other (TaskKind::texts_go_on): whether this one begins a text. If not, it
  // continues the preceding example of the data set, which a model with memory remembers.
  virtual bool begins_text(const data::LoadedExample& /*example*/) const { return true; }

  // For people: one example's question, the model's scores of the choices, and the answer in the raw record's text.
  // Input and logits are those of this example alone. A task of whole texts does not use the record.
  virtual std::string show(const data::RecordSlice& raw_record, const data::Example& example,
                           const HeadOutput& logits) const = 0;
  // Why the task has no show(), for the message of --show; "": it has one.
  virtual std::string no_show() const { return ""; }
};

}  // namespace etc
