#include "tasks/pretrain/corpus_run.h"

#include <algorithm>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "data/dataset_info.h"
#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/progress.h"
#include "tasks/prepare/bytes.h"
#include "tasks/prepare/parts.h"
#include "tasks/prepare/record_walk.h"
#include "tasks/prepare/run_inputs.h"
#include "tasks/pretrain/prepare.h"
#include "tasks/pretrain/shared_examples.h"
#include "tasks/train/stop_signal.h"

namespace etc::pretrain {

namespace {

using prepare::Counts;
using prepare::PartFiles;

void stop_if_asked() {
  if (!StopSignal::requested()) return;
  throw Interrupted(
      fmt::format("prepare: stopped by {}; input files that are cut into pieces are kept, the same "
                  "command goes on from there",
                  StopSignal::name()));
}

// A record's sentences and faults.
struct CutRecord {
  CutText cut;
  prepare::FaultList faults;
};

std::string bytes_of(const CutRecord& record) {
  prepare::ByteWriter out;
  const TokenizedText& text = record.cut.text;
  out.put(text.ids);
  out.put(text.sentence_ends);
  out.put(text.document_begins);
  out.put(record.cut.invalid_bytes);
  out.put(record.cut.cut_sentences);
  out.put(record.faults);
  return out.take();
}

CutRecord cut_record_of(std::string_view bytes) {
  prepare::ByteReader in(bytes);
  CutRecord record;
  TokenizedText& text = record.cut.text;
  in.get(text.ids);
  in.get(text.sentence_ends);
  in.get(text.document_begins);
  in.get(record.cut.invalid_bytes);
  in.get(record.cut.cut_sentences);
  in.get(record.faults);
  in.require_end();
  return record;
}

class CorpusRun {
 public:
  CorpusRun(const PretrainPreparation& preparation, const prepare::RunOptions& options)
      : preparation_(preparation),
        config_(preparation.config()),
        options_(options),
        processes_(options.processes == nullptr ? one_process() : *options.processes),
        parts_(prepare::place_of_parts(options), prepare::run_configuration(preparation, options)) {}

  Counts execute() {
    if (processes_.first()) return lead();
    help();
    return {};
  }

 private:
  void warn_of_settings() const {
    if (config_.objective == Objective::mlm_cpc && limits_predictions(config_)) {
      log::warn("prepare: max_predictions_per_seq {} has no effect: mlm_cpc has no such limit",
                *config_.max_predictions_per_seq);
    }
  }

  Counts lead() {
    warn_of_settings();
    sources_ = prepare::check_inputs(preparation_, options_);
    // A stream's part cannot be found again by hash: the hash is only known after the stream was read.
    for (std::size_t i = 0; i < sources_.size(); ++i) files_.push_back(parts_.files_of({sources_[i]}));
    common_ = parts_.files_of(sources_);
    parts_.hold();
    cut_texts();
    try {
      find_documents();
      make_instances();
      write_examples();
    } catch (const NumberFileError& error) {
      parts_.fail_to_read(error);
    }
    if (options_.parts_room != nullptr) *options_.parts_room = {parts_.bytes(), sources_.size()};
    parts_.remove();
    return counts_;
  }

  // The other processes' shares of steps 1 and 4.
  void help() const {
    const std::string missing = from_first(processes_, "");
    for (const std::size_t i : prepare::ByteReader(missing).get<std::vector<std::size_t>>()) {
      prepare::help_to_walk(preparation_, options_.inputs[i], cutting());
    }
    help_to_make_examples(preparation_.maker(), config_, corpus_files_of(from_first(processes_, "")), processes_);
  }

  static StorePaths store_of(const PartFiles& files) { return {files.pieces, files.sentences, files.begins}; }

  std::vector<StorePaths> stores() const {
    std::vector<StorePaths> all;
    for (const PartFiles& files : files_) all.push_back(store_of(files));
    return all;
  }

  // ---- Step 1: text. ----

  void cut_texts() {
    const std::int64_t bytes = prepare::total_bytes(sources_);
    const prepare::ProgressUnit unit = prepare::progress_unit(bytes);
    Progress progress("prepare: text", bytes / unit.bytes, unit.name);
    const std::vector<std::optional<Counts>> finished = finished_texts();
    std::int64_t before = 0;  // bytes of the finished files
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      std::optional<Counts> counts = finished[i];
      if (counts) {
        prepare::check_part_strictly(*counts, options_);
        log::info("prepare: {} is cut into pieces from an earlier run", sources_[i].name);
      } else {
        counts = cut_text(i, [&](std::int64_t read) { progress.update((before + read) / unit.bytes); });
      }
      counts_.add(*counts);
      before += sources_[i].bytes;
    }
    progress.finish();
    const auto invalid = counts_.codes.find("ignored invalid_byte");
    if (invalid == counts_.codes.end()) return;
    log::warn("prepare: {} bytes are not UTF-8 and are left out (the report names the files)", invalid->second);
  }

  // The parts of an earlier run; the remaining files are broadcast to the other processes.
  std::vector<std::optional<Counts>> finished_texts() const {
    std::vector<std::optional<Counts>> finished(sources_.size());
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (!sources_[i].sha256.empty()) finished[i] = parts_.finished(files_[i]);
      if (!finished[i]) missing.push_back(i);
    }
    prepare::ByteWriter bytes;
    bytes.put(missing);
    from_first(processes_, bytes.text());
    return finished;
  }

  prepare::RecordWork<CutRecord> cutting() const {
    prepare::RecordWork<CutRecord> work;
    work.work = [this](data::RecordSlice& slice) {
      CutRecord record;
      record.cut = preparation_.cut(slice, record.faults);
      return record;
    };
    work.shared = &shared_;
    return work;
  }

  Counts cut_text(std::size_t i, const std::function<void(std::int64_t)>& progress) {
    const PartFiles& files = files_[i];
    const bool stream = sources_[i].sha256.empty();
    Counts counts;
    prepare::Report report(files.report);
    prepare::InputFaults faults(sources_[i].name, report, counts);
    StoreWriter store(store_of(files));
    if (config_.document_ends == DocumentEnds::files) store.begin_document();
    prepare::RecordWork<CutRecord> work = cutting();
    work.deliver = [&](std::int64_t index, const data::TextPosition& begin, CutRecord&& record) {
      prepare::PassRecord pass{index, begin, {}};
      pass.converted.faults = std::move(record.faults);
      take_record(i, pass, faults, counts);
      store.add(record.cut.text);
      if (record.cut.invalid_bytes > 0) counts.codes["ignored invalid_byte"] += record.cut.invalid_bytes;
      if (record.cut.cut_sentences > 0) counts.codes["warn sentence_cut"] += record.cut.cut_sentences;
    };
    work.progress = [&](std::int64_t bytes) {
      progress(bytes);
      stop_if_asked();
    };
    if (stream) work.source = &sources_[i];
    const prepare::PassEnd end = prepare::walk_records(preparation_, options_.inputs[i], work);
    if (end.fault) stop_if_asked();
    faults.add_end(end, config_.text_key.empty() ? "blocks of lines" : "records");
    if (const auto invalid = counts.codes.find("ignored invalid_byte"); invalid != counts.codes.end()) {
      ++counts.warned;
      faults.warn("utf8_invalid", fmt::format("{} bytes are not UTF-8 and are left out", invalid->second));
    }
    store.finish();
    report.finish();
    if (!stream) parts_.finish(files, counts);
    return counts;
  }

  void take_record(std::size_t i, const prepare::PassRecord& record, prepare::InputFaults& faults,
                   Counts& counts) const {
    faults.add_record(record, options_.list_truncated);
    if (!record.converted.faults.rejected()) return;
    ++counts.rejected;
    if (options_.strict) prepare::fail_strictly(sources_[i].name, record.index, record.converted.faults);
  }

  // ---- Step 2: documents. ----

  void find_documents() {
    const DocumentCounts documents = write_documents(stores(), *config_.min_document_sentences, common_.documents);
    counts_.dropped += documents.too_short;
    counts_.records = documents.kept + documents.too_short + counts_.rejected;
    if (documents.too_short > 0) counts_.codes["drop document_short"] += documents.too_short;
    if (documents.kept == 0) fail_without_documents(documents.too_short);
    if (documents.kept == 1 && config_.objective == Objective::mlm_nsp) {
      log::warn(
          "prepare: the text is a single document, random next sentences come from that document itself "
          "(expected empty lines between documents)");
    }
    store_.emplace(stores(), common_.documents, may_hold_);
  }

  [[noreturn]] void fail_without_documents(std::int64_t too_short) {
    const std::string rejected = report_without_documents();
    parts_.remove();  // useless: the same texts would again give no document
    std::vector<std::string> names;
    for (const auto& input : options_.inputs) names.push_back(input.string());
    if (too_short > 0) {
      fail("etc prepare",
           "{}: expected documents of at least {} sentences, got {} shorter ones (--min-document-sentences){}{}",
           fmt::join(names, ", "), *config_.min_document_sentences, too_short, rejected.empty() ? "" : " and ",
           rejected);
    }
    fail("etc prepare", "{}: no document with a word: expected text{}{}", fmt::join(names, ", "),
         rejected.empty() ? "" : ", got ", rejected);
  }

  // Writes the report, if there is anything to report. Returns a text about the rejected records, "" if there are none.
  std::string report_without_documents() const {
    std::string rows;
    for (const PartFiles& files : files_) rows += parts_.reading([&] { return read_file(files.report); });
    if (!rows.empty()) write_file_atomically(options_.report, rows);
    if (counts_.rejected == 0) return "";
    return fmt::format("{} rejected {}; the first: {} (all of them: {})", counts_.rejected,
                       counts_.rejected == 1 ? "record" : "records", counts_.first_rejected, options_.report.string());
  }

  // ---- Step 3: instances. ----

  struct TaskInstances {
    std::vector<Instance> instances;
    std::int64_t left_out = 0;
  };

  void make_instances() {
    constexpr std::int64_t kDocuments = 64, kTasks = 64;  // documents per task; tasks per window
    const auto texts = views_of(*store_);
    const std::int64_t documents = texts[0]->documents(), copies = *config_.dupe_factor;
    NumberWriter<Instance> file(common_.instances);
    Progress progress("prepare: instances", documents * copies, "documents");
    std::int64_t left_out = 0;
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      for (std::int64_t first = 0; first < documents; first += kDocuments * kTasks) {
        const std::int64_t tasks = std::min(kTasks, (documents - first + kDocuments - 1) / kDocuments);
        std::vector<TaskInstances> made(static_cast<std::size_t>(tasks));
        parallel_for(tasks, [&](std::int64_t task, int thread) {
          const std::int64_t begin = first + task * kDocuments, end = std::min(begin + kDocuments, documents);
          for (std::int64_t d = begin; d < end; ++d) {
            add_document(*texts[static_cast<std::size_t>(thread)], copy, d, made[static_cast<std::size_t>(task)]);
          }
        });
        for (const TaskInstances& some : made) {
          file.add(some.instances);
          left_out += some.left_out;
        }
        progress.update(copy * documents + std::min(first + kDocuments * kTasks, documents));
        stop_if_asked();
      }
    }
    file.finish();
    progress.finish();
    counts_.examples = file.count();
    if (left_out > 0) counts_.codes["drop chunk_short"] += left_out;
  }

  void add_document(TextIndex& text, std::int64_t copy, std::int64_t document, TaskInstances& made) const {
    const auto take = [&](const Instance& instance) {
      made.instances.push_back(instance);
      made.instances.back().copy = copy;
    };
    const std::int64_t length = *config_.max_seq_length;
    if (config_.objective == Objective::mlm_nsp) {
      CounterDraws draws(draws_key(seed_for(config_.random_seed, DrawnFor::instances), static_cast<std::uint64_t>(copy),
                                   static_cast<std::uint64_t>(document)));
      return pair_instances(text, document, {length, config_.short_seq_prob}, draws, take);
    }
    // [CLS] … [SEP], or [CLS] … (1.8, 2.2); a hidden sentence needs at least one other sentence.
    RunRules rules;
    rules.max_pieces = length - 2;
    rules.max_sentences = text.document(document).sentences;
    if (config_.objective == Objective::mlm_cpc) rules = {length - 1, config_.global_seq_len, 2};
    made.left_out += run_instances(text, document, rules, take);
  }

  // ---- Step 4: examples. ----

  void write_examples() {
    data::DatasetWriter writer(options_.output, preparation_.schema(), prepare::dataset_info(preparation_, options_));
    prepare::Report report(options_.report);
    for (const PartFiles& files : files_) take_report(files, writer, report);
    const CorpusFiles files{stores(), common_.documents, common_.instances, counts_.examples};
    from_first(processes_, text_of(files));
    SharedExamples examples(preparation_.maker(), config_, files, &*store_, may_hold_, processes_);
    const std::int64_t window = examples.window();
    Progress progress("prepare: examples", counts_.examples, "examples");
    // Double buffering: one window is written while worker threads make the next one. The writing thread does nothing else.
    std::vector<ExamplePlace> done(static_cast<std::size_t>(window)), made(static_cast<std::size_t>(window));
    std::int64_t ready = 0;  // examples in `done`
    const auto write_done = [&] { write({done.data(), static_cast<std::size_t>(ready)}, writer); };
    for (std::int64_t first = 0; first < counts_.examples; first += window) {
      const std::int64_t count = std::min(counts_.examples - first, window);
      examples.make(first, count, made, write_done);
      done.swap(made);
      ready = count;
      progress.update(first + count);
      stop_if_asked();
    }
    write_done();
    progress.finish();
    writer.finish(sources_, counts_.records, counts_.rejected, counts_.dropped);
    report.finish();
  }

  static void write(std::span<const ExamplePlace> places, data::DatasetWriter& writer) {
    for (const ExamplePlace& place : places) writer.append(place.example());
  }

  void take_report(const PartFiles& files, data::DatasetWriter& writer, prepare::Report& report) const {
    std::istringstream lines(parts_.reading([&] { return read_file(files.report); }));
    for (std::string line; std::getline(lines, line);) {
      const data::Fault fault =
          parts_.reading([&] { return prepare::fault_of(parse_json(line, files.report.string())); });
      report.add(fault);
      if (fault.severity == data::Severity::reject || fault.severity == data::Severity::drop) writer.add_fault(fault);
      if (fault.severity == data::Severity::fatal) writer.mark_missing({fault.file, fault.message});
    }
  }

  const PretrainPreparation& preparation_;
  const PrepareConfig& config_;
  const prepare::RunOptions& options_;
  Communicator& processes_;
  const prepare::SharedWalk<CutRecord> shared_{processes_, bytes_of, cut_record_of};
  prepare::Parts parts_;
  StopSignal stop_signal_;
  std::vector<data::SourceFile> sources_;
  std::vector<PartFiles> files_;  // for each input
  PartFiles common_;              // for all inputs together
  std::int64_t may_hold_ = kHeldBytes;
  std::optional<TokenStore> store_;
  Counts counts_;
};

}  // namespace

Counts run_corpus(const PretrainPreparation& preparation, const prepare::RunOptions& options) {
  return CorpusRun(preparation, options).execute();
}

}  // namespace etc::pretrain
