#include "tasks/train/evaluate.h"

#include <set>

#include "data/loader/loader.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/progress.h"
#include "tasks/train/stop_signal.h"

namespace etc {

data::LoaderOptions evaluation_order(std::int64_t micro_batch_tokens) {
  data::LoaderOptions options;
  options.batch_examples = 64;  // read at once; the micro-batches decide about memory
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

bool predict_dataset(TaskModel& model, const std::shared_ptr<const data::DatasetReader>& reader,
                     const std::string& where, const std::string& what, Predictions& predictions,
                     std::int64_t micro_batch_tokens) {
  for (std::int64_t row = 0; row < reader->gold_size(); ++row) predictions.add_gold(reader->read_gold(row));
  data::Loader loader(reader, evaluation_order(micro_batch_tokens));
  Progress progress(what, reader->size(), "examples");
  std::int64_t done = 0;
  for (data::LoadedBatch batch; loader.next(batch);) {
    for (const auto& micro_batch : batch.micro_batches) {
      if (StopSignal::requested()) return false;
      predict_examples(model, micro_batch, where, predictions);
      done += static_cast<std::int64_t>(micro_batch.size());
      progress.update(done);
    }
  }
  add_rejected_records(*reader, predictions);
  return true;
}

std::shared_ptr<const data::DatasetReader> open_dataset(const std::vector<std::string>& files,
                                                        const data::Schema& schema, const DataDemand& demand) {
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
