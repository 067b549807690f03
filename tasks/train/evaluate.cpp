#include "tasks/train/evaluate.h"

#include <algorithm>
#include <map>
#include <set>

#include "data/loader/loader.h"
#include "data/loader/order.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/progress.h"
#include "tasks/train/carried_memory.h"
#include "tasks/train/shared_logits.h"
#include "tasks/train/stop_signal.h"
#include "tasks/train/text_rounds.h"

namespace etc {

data::LoaderOptions evaluation_order(std::int64_t micro_batch_tokens) {
  data::LoaderOptions options;
  options.batch_examples = 64;  // read at once; memory is limited by the micro-batches
  options.micro_batch_tokens = micro_batch_tokens;
  options.shuffle = false;
  options.epochs = 1;
  options.carry_partial = false;
  return options;
}

std::int64_t tokens_of(const data::Example& example, const data::Schema& schema) {
  const auto length = [&](const std::string& align) -> std::int64_t {
    for (const data::FeatureSpec& spec : schema.features) {
      const auto value = example.find(spec.name);
      if (spec.align != align || value == example.end()) continue;
      return std::visit(
          [](const auto& list) -> std::int64_t {
            if constexpr (requires { list.size(); }) return std::ssize(list);
            return 1;
          },
          value->second);
    }
    if (align != schema.long_align) return 0;  // the task has no such tokens
    fail("schema", "task {} has no align class {}", schema.task, align);
  };
  return length(schema.long_align) + length(schema.global_align);
}

void predict_examples(TaskModel& model, Examples examples, const std::string& where, Predictions& predictions) {
  EncoderInput input = model.task->feed(examples, where);
  Tape tape(Recording::off);
  const HeadOutput logits = model.forward_in_place(tape, examples, input, ForwardOptions{});
  predictions.add(examples, input, logits);
}

void predict_together(TaskModel& model, const SharedMicroBatches& all, Predictions* predictions) {
  const auto share = [&](int rank) { return data::share_of(all.count, rank, all.processes.size()); };
  const auto decoded = [&](Examples examples) {
    if (all.decoded) all.decoded(examples);
  };
  std::string own;
  const data::Share mine = share(all.processes.rank());
  for (std::int64_t m = mine.begin; m < mine.end; ++m) {
    const Examples examples = all.examples(m);
    if (examples.empty()) continue;
    if (predictions != nullptr) {
      predict_examples(model, examples, all.where, *predictions);
      decoded(examples);
      continue;
    }
    EncoderInput input = model.task->feed(examples, all.where);
    Tape tape(Recording::off);
    append_logits(own, model.forward(tape, examples, input, ForwardOptions{}));
  }
  const std::vector<std::string> computed = collect(all.processes, own);
  for (int rank = 1; rank < std::ssize(computed); ++rank) {
    std::size_t at = 0;
    for (std::int64_t m = share(rank).begin; m < share(rank).end; ++m) {
      const Examples examples = all.examples(m);
      if (examples.empty()) continue;
      const EncoderInput input = model.task->feed(examples, all.where);
      predictions->add(examples, input, take_logits(computed[static_cast<std::size_t>(rank)], at));
      decoded(examples);
    }
  }
}

namespace {

// Once for every record that was rejected when the data were prepared.
void add_rejected_records(const data::DatasetReader& reader, Predictions& predictions) {
  std::set<std::pair<std::string, std::int64_t>> seen;
  for (const data::Fault& fault : reader.faults()) {
    if (fault.severity == data::Severity::reject && seen.emplace(fault.file, fault.record_index).second) {
      predictions.add_rejected(fault);
    }
  }
}

}  // namespace

namespace {

// The batches of a pass, one after the other.
class DatasetPredictor {
 public:
  DatasetPredictor(TaskModel& model, const DatasetPass& pass, Predictions* predictions)
      : model_(model),
        pass_(pass),
        processes_(*pass.processes),
        predictions_(predictions),
        most_(pass.most_examples > 0 ? std::min(pass.most_examples, pass.reader->size()) : pass.reader->size()),
        progress_(pass.what, most_, "examples") {}

  // False: this process, or one of them, was told to stop.
  bool take(data::LoadedBatch batch) {
    for (std::vector<data::LoadedExample>& micro_batch : batch.micro_batches) {
      std::erase_if(micro_batch, [&](const data::LoadedExample& example) { return example.index >= most_; });
    }
    taken_ += batch.all_examples;
    return processes_.size() == 1 ? alone(batch) : together(batch);
  }

  // Whether the pass has read all of its examples.
  bool whole() const { return taken_ >= most_; }

 private:
  bool alone(const data::LoadedBatch& batch) {
    for (const auto& micro_batch : batch.micro_batches) {
      if (StopSignal::requested()) return false;
      if (!micro_batch.empty()) decode(micro_batch);
    }
    return true;
  }

  bool together(const data::LoadedBatch& batch) {
    if (any_of(processes_, StopSignal::requested())) return false;
    const auto examples = [&](std::int64_t number) {
      return Examples(batch.micro_batches[static_cast<std::size_t>(number - batch.first_micro_batch)]);
    };
    const auto decoded = [this](Examples some) { count(some); };
    predict_together(model_, {processes_, batch.all_micro_batches, examples, pass_.where, decoded}, predictions_);
    return true;
  }

  void decode(Examples examples) {
    if (model_.memory != nullptr) {
      predict_texts(model_, examples, pass_.where, *predictions_);
    } else {
      predict_examples(model_, examples, pass_.where, *predictions_);
    }
    count(examples);
  }

  void count(Examples examples) { progress_.update(done_ += std::ssize(examples)); }

  TaskModel& model_;
  const DatasetPass& pass_;
  Communicator& processes_;
  Predictions* predictions_;
  const std::int64_t most_;  // examples of the pass, which are the first of the data
  Progress progress_;
  std::int64_t done_ = 0, taken_ = 0;  // examples decoded; read, by all processes
};

// Replaces the model's own memory, such as that of a run, during one pass.
class MemoryOfPass : NotCopied {
 public:
  explicit MemoryOfPass(TaskModel& model) : model_(model), before_(model.memory) { own_.serve(model); }
  ~MemoryOfPass() { model_.memory = before_; }

 private:
  TaskModel& model_;
  CarriedMemory* before_;
  CarriedMemory own_;
};

// A text's segments must be computed one after the other, so a model with memory is evaluated by the first process
// alone; the others wait for it.
bool first_alone(TaskModel& model, DatasetPass pass, Predictions* predictions) {
  Communicator& processes = *pass.processes;
  bool whole = true;
  if (processes.first()) {
    pass.processes = &one_process();
    whole = predict_dataset(model, pass, predictions);
  }
  return !any_of(processes, !whole);
}

}  // namespace

std::int64_t evaluation_tokens(const EncoderConfig& model, const Json& task_section, const data::DatasetReader& reader,
                               std::int64_t most) {
  if (!carries_memory(model, task_section)) return most;
  const std::vector<std::int64_t> tokens = data::token_counts(reader);
  const std::int64_t longest = *std::max_element(tokens.begin(), tokens.end());
  return std::max<std::int64_t>(1, most * longest / (longest + CarriedMemory::rows_of(model)));
}

bool predict_dataset(TaskModel& model, const DatasetPass& pass, Predictions* predictions) {
  const Communicator& processes = *pass.processes;
  if (processes.size() > 1 && carries_memory(*model.config, model.task_section)) {
    return first_alone(model, pass, predictions);
  }
  const data::DatasetReader& reader = *pass.reader;
  for (std::int64_t row = 0; predictions != nullptr && row < reader.gold_size(); ++row) {
    predictions->add_gold(reader.read_gold(row));
  }
  const MemoryOfPass memory(model);
  data::LoaderOptions order =
      evaluation_order(evaluation_tokens(*model.config, model.task_section, reader, pass.micro_batch_tokens));
  order.micro_batch_unit = order.batch_examples;  // tasks may compare the examples of a micro-batch
  order.batch_examples *= processes.size();
  if (!processes.first()) {  // the first process decodes, and so reads everything
    order.rank = processes.rank();
    order.ranks = processes.size();
  }
  data::Loader loader(pass.reader, order);
  DatasetPredictor predictor(model, pass, predictions);
  for (data::LoadedBatch batch; !predictor.whole() && loader.next(batch);) {
    if (!predictor.take(std::move(batch))) return false;
  }
  if (predictions != nullptr && pass.most_examples == 0) add_rejected_records(reader, *predictions);
  return true;
}

namespace {

// Examples of a file named twice would count twice.
void require_different_files(const std::vector<std::string>& files) {
  std::map<std::filesystem::path, std::string> seen;  // links followed
  for (const std::string& file : files) {
    std::error_code unknown;  // the code that opens the file reports it
    const std::filesystem::path place = std::filesystem::weakly_canonical(file, unknown);
    if (unknown) continue;
    const auto [first, fresh] = seen.try_emplace(place, file);
    if (fresh) continue;
    fail_usage("data", "{}: expected every file once, got it twice{}", file,
               file == first->second ? "" : fmt::format(", the other time as {}", first->second));
  }
}

}  // namespace

std::shared_ptr<const data::DatasetReader> open_dataset(const std::vector<std::string>& files,
                                                        const data::Schema& schema, const DataDemand& demand) {
  require_different_files(files);
  auto reader =
      std::make_shared<data::DatasetReader>(std::vector<std::filesystem::path>(files.begin(), files.end()), schema);
  for (const std::string& missing : reader->missing_texts()) {
    if (!demand.allow_incomplete) {
      throw Error(missing + " (prepare it again from a whole file, or take what there is with --allow-incomplete)");
    }
    log::warn("{} (taken as it is: --allow-incomplete)", missing);
  }
  if (!demand.vocab_sha256.empty()) reader->require_vocabulary(demand.vocab_sha256);
  if (reader->size() == 0) fail(files_text(files), "the data set has no examples (see its rejects: `etc info`)");
  return reader;
}

std::string files_text(const std::vector<std::string>& files) {
  if (files.empty()) return "no file";
  return files.size() == 1 ? files[0] : fmt::format("{} and {} more", files[0], files.size() - 1);
}

}  // namespace etc
