#include "tasks/analyze/document_source.h"

#include <memory>

#include "data/dataset_info.h"
#include "data/readers/byte_stream.h"
#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/model_files.h"
#include "tasks/inference/record_model.h"
#include "tasks/inference/text_encoder.h"
#include "tasks/prepare/file_pass.h"
#include "tasks/train/fed_encoder.h"
#include "tasks/train/model.h"
#include "tasks/train/run_config.h"

namespace etc::analyze {

namespace {

namespace fs = std::filesystem;
constexpr const char* kDocumentSource = "etc analyze";

std::shared_ptr<const data::Tokenizer> vocabulary_of(const FedEncoder& fed, const fs::path& folder,
                                                     const fs::path& given) {
  const DataIdentity data = DataIdentity::of(fed.document());
  fs::path path = given;
  if (path.empty() && !data.vocab_file.empty()) path = folder / data.vocab_file;
  if (path.empty()) {
    fail_usage(kDocumentSource, "--document: {} keeps no vocabulary: give that of the data with --vocab",
               folder.string());
  }
  return Vocabulary(path, DataIdentity::of(fed.reader()->info())).tokenizer;
}

DocumentSource prepared_example(const fs::path& folder, const DocumentRequest& request) {
  const auto fed = std::make_shared<FedEncoder>(request.data, folder, request.allow_incomplete);
  const std::int64_t size = fed->reader()->size();
  if (request.number >= size) {
    fail_usage(kDocumentSource, "--document {}: expected the number of an example below {}", request.number, size);
  }
  const auto vocabulary = vocabulary_of(*fed, folder, request.vocab);
  fed->load(Device::cpu, ComputeType::fp32);
  const auto feed = [fed, vocabulary, number = request.number](Tape& tape) {
    const std::vector<data::LoadedExample> alone = {{number, number, fed->reader()->read(number)}};
    return fed->feed(tape, alone);
  };
  return {fmt::format("example {} of {}", request.number, fed->where()),
          fed->reader()->info().task,
          fed->model(),
          *vocabulary,
          fed->encoder(),
          feed};
}

// ---- Raw records. ----

struct Found {};  // thrown to end a pass over a file when the record was found

// The examples of the record with this index. Throws Error if it does not exist or has faults.
prepare::PassRecord record_of(const prepare::Preparation& preparation, const DocumentRequest& request) {
  const std::string file = request.input.string();
  std::int64_t records = 0;
  prepare::PassRecord found;
  prepare::PassCallbacks callbacks;
  callbacks.record = [&](prepare::PassRecord&& record) {
    records = record.index + 1;
    if (record.index == request.number) found = std::move(record);
  };
  callbacks.progress = [&](std::int64_t) {
    if (records > request.number) throw Found();
  };
  try {
    const prepare::PassEnd end = pass_over_file(preparation, request.input, callbacks);
    if (end.fault) fail(file, "{}: {}", end.fault->code(), end.fault->what());
  } catch (const Found&) {
  }
  if (records <= request.number) {
    fail_usage(kDocumentSource, "--document {}: expected the number of a record below {} in {}", request.number,
               records, file);
  }
  const prepare::FaultList& faults = found.converted.faults;
  if (!faults.rejected() && !faults.dropped()) return found;
  std::string text;
  for (const data::Fault& fault : faults.rows()) {
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", fault.field, fault.code, fault.message);
  }
  fail(file, "record {} {}: {}", request.number, found.converted.id, text);
}

DocumentSource raw_record(const fs::path& folder, const DocumentRequest& request) {
  RecordModelOptions options;
  options.model = folder;
  options.vocab = request.vocab;
  const auto model = std::make_shared<RecordModel>(kDocumentSource, options);
  prepare::PassRecord record = record_of(model->preparation(), request);
  const std::int64_t parts = std::ssize(record.converted.examples);
  if (request.part >= parts) {
    fail_usage(kDocumentSource, "--part {}: expected one below {}, the examples of record {}", request.part, parts,
               request.number);
  }
  TaskModel& loaded = model->running().model;
  const auto example = std::make_shared<const data::Example>(
      std::move(record.converted.examples[static_cast<std::size_t>(request.part)]));
  const std::string file = request.input.string();
  const auto feed = [model, example, &loaded, file](Tape& tape) {
    const std::vector<data::LoadedExample> alone = {{0, 0, *example}};
    EncoderInput input = loaded.task->feed(alone, file);
    loaded.task->add_to_embeddings(tape, alone, input);
    return input;
  };
  const std::string part = parts > 1 ? fmt::format(", part {} of {}", request.part, parts) : "";
  return {fmt::format("record {} of {}{} ({})", request.number, file, part, record.converted.id),
          model->task(),
          *loaded.config,
          model->tokenizer(),
          *loaded.encoder,
          feed};
}

// ---- Plain texts. ----

// A document of a text; documents end at empty lines. Throws Error if the text has fewer documents.
std::string text_document(const DocumentRequest& request) {
  data::ByteStream stream(request.input);
  std::string all, block(std::size_t{1} << 16, '\0');
  while (const std::size_t got = stream.read(block.data(), block.size())) all.append(block, 0, got);
  if (!stream.fault().empty()) fail(request.input.string(), "{}", stream.fault());
  std::int64_t number = -1;
  std::string document;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      if (number == request.number && !document.empty()) break;
      document.clear();
      continue;
    }
    if (document.empty()) ++number;
    document += line + "\n";
  }
  if (number != request.number || document.empty()) {
    fail_usage(kDocumentSource, "--document {}: expected the number of a document below {} in {}", request.number,
               number + 1, request.input.string());
  }
  return document;
}

DocumentSource plain_text(const fs::path& folder, const DocumentRequest& request, const std::string& task) {
  if (request.part > 0) fail_usage(kDocumentSource, "--part: a text is one example: expected 0, got {}", request.part);
  TextEncoderOptions options;
  options.model = folder;
  options.vocab = request.vocab;
  const auto encoder = std::make_shared<const TextEncoder>(kDocumentSource, options);
  const std::string name = fmt::format("document {} of {}", request.number, request.input.string());
  const std::string text = text_document(request);
  return {name, task, encoder->model(), encoder->tokenizer(), encoder->encoder(), [encoder, text, name](Tape&) {
            const PreparedText prepared = encoder->prepare(text, name);
            return encoder->input_of({&prepared, 1});
          }};
}

// The task whose examples are made from whole texts; its raw files have no independent records.
constexpr const char* kTextTask = "pretrain";

}  // namespace

DocumentSource open_document(const fs::path& folder, const DocumentRequest& request) {
  if (!request.data.empty()) return prepared_example(folder, request);
  const Json document = read_model_config(folder);
  const std::string task = has_task(document) ? named_task(document) : "none";
  if (task == kTextTask || !has_task(document)) return plain_text(folder, request, task);
  return raw_record(folder, request);
}

}  // namespace etc::analyze
