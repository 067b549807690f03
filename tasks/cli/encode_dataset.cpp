#include "tasks/cli/encode_dataset.h"

#include <memory>
#include <optional>

#include "data/dataset_info.h"
#include "data/loader/loader.h"
#include "etc_core/base/error.h"
#include "etc_core/base/progress.h"
#include "tasks/cli/processes.h"
#include "tasks/prepare/bytes.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/fed_encoder.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

using data::FeatureKind;
using data::StoredType;

constexpr const char* kTask = "hidden_states";

// The kinds of tokens that have states.
std::vector<std::string> sides_of(const EncoderConfig& model) {
  return model.has_global_tokens() ? std::vector<std::string>{"long", "global"} : std::vector<std::string>{"long"};
}

// Elements first … end-1 of a tensor as a feature.
std::vector<float> part_of(const Tensor& values, std::int64_t first, std::int64_t end) {
  return {values.data() + first, values.data() + end};
}

// The features of one micro-batch while it is encoded.
class Encoded {
 public:
  Encoded(Examples examples, const EncoderInput& input) : input_(input), rows_(examples.size()) {
    for (std::size_t b = 0; b < rows_.size(); ++b) {
      rows_[b]["id"] = examples[b].features.find("id")->second;
      rows_[b]["long_token_ids"] = ids(input.token_ids, input.long_offsets, b);
      rows_[b]["global_token_ids"] = ids(input.global_token_ids, input.global_offsets, b);
    }
  }

  // Adds states, [T, H] and, with global tokens, [U, H], as <prefix>long and <prefix>global.
  void put_states(const std::string& prefix, const Tensor& of_long, const Tensor& of_global) {
    for (std::size_t b = 0; b < rows_.size(); ++b) {
      rows_[b][prefix + "long"] = rows_of(of_long, input_.long_offsets, b);
      if (of_global) rows_[b][prefix + "global"] = rows_of(of_global, input_.global_offsets, b);
    }
  }

  // Adds scores of the only example; types without scores are undefined.
  void put_scores(const std::string& prefix, const ExternalScores& scores) {
    for (const auto& [type, values] : scores) {
      if (values) rows_.front()[prefix + type] = part_of(values, 0, values.size());
    }
  }

  const std::vector<data::Example>& rows() const { return rows_; }

 private:
  static std::vector<float> rows_of(const Tensor& states, const std::vector<std::int64_t>& offsets, std::size_t b) {
    return part_of(states, offsets[b] * states.cols(), offsets[b + 1] * states.cols());
  }
  static std::vector<std::int64_t> ids(const std::vector<std::int32_t>& all, const std::vector<std::int64_t>& offsets,
                                       std::size_t b) {
    return {all.begin() + offsets[b], all.begin() + offsets[b + 1]};
  }

  const EncoderInput& input_;
  std::vector<data::Example> rows_;
};

std::string layer_prefix(std::int64_t layer) {
  return layer < 0 ? "embedding_" : fmt::format("layer_{}_", layer);
}

data::DatasetInfo output_info(const data::DatasetInfo& source, const EncoderConfig& model) {
  data::DatasetInfo info;
  info.task = kTask;
  info.split = source.split;
  info.vocab_sha256 = source.vocab_sha256;
  info.preprocess_config = {{"model", model.to_json()},
                            {"data",
                             {{"task", source.task},
                              {"content_sha256", source.content_sha256},
                              {"preprocess_config", source.preprocess_config}}}};
  info.labelled = source.labelled;
  info.unicode_version = source.unicode_version;
  info.missing = source.missing;
  return info;
}

// The memory of a micro-batch until its rows are written: the call, and copies of everything it returns.
CountedCall counted_encoding(const Json& document, const EncoderConfig& model, const EncodeOn& on,
                             const data::Schema& schema, Examples examples) {
  return [&document, &model, on, &schema, examples](const std::function<void()>& loaded) {
    const auto task = feeding_task(document, model, schema.task, "");
    ParameterSet parameters;
    const auto encoder = model.make_encoder(parameters);
    if (has_task(document)) task->add_parameters(parameters);
    for (const auto& parameter : parameters.all()) parameter->allocate();
    encoder->release_kernels(on.types);
    loaded();
    Tape tape(Recording::off);
    EncoderInput input = task->feed(examples, "");
    if (has_task(document)) task->add_to_embeddings(tape, examples, input);
    std::vector<Tensor> rows;
    const auto copy = [&rows](const Tensor& values) {
      if (values) rows.push_back(Tensor::empty(values.shape(), Purpose::activations));
    };
    ForwardOptions options;
    if (on.all_layers) {
      options.watch = [&](std::int64_t, const Tensor& of_long, const Tensor& of_global, const ExternalScores& scores) {
        copy(of_long);
        copy(of_global);
        for (const auto& [type, values] : scores) copy(values);
      };
    }
    const EncoderStates states = encoder->forward(tape, input, options);
    copy(states.long_states.value());
    if (states.global_states.defined()) copy(states.global_states.value());
  };
}

// The most tokens per micro-batch. With scores it is one example at a time.
std::int64_t micro_batch_tokens(const Json& document, const EncoderConfig& model, const EncodeOn& on,
                                const data::DatasetReader& reader) {
  const std::int64_t most = on.all_layers ? 1 : kEvaluationTokens;
  if (on.memory_limit == 0) return most;
  InferenceFit fit("etc encode", on.memory_limit, on.device, model, on.types);
  // The writer collects a chunk of every feature and compresses it; including HDF5's own buffers this is four times as
  // much.
  constexpr std::int64_t kChunkBytes = 65536 * sizeof(float);
  fit.hold(4 * kChunkBytes * std::ssize(encoded_schema(model, on.all_layers).features));
  return fit.choose(reader, most, [&](Examples examples) {
    return counted_encoding(document, model, on, reader.schema(), examples);
  });
}

}  // namespace

data::Schema encoded_schema(const EncoderConfig& model, bool all_layers) {
  data::Schema schema;
  schema.task = kTask;
  schema.features = {{"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                     {"long_token_ids", FeatureKind::ragged, StoredType::i32, schema.long_align, {}, {}},
                     {"global_token_ids", FeatureKind::ragged, StoredType::i32, schema.global_align, {}, {}}};
  const auto add = [&](const std::string& name) {
    schema.features.push_back({name, FeatureKind::ragged, StoredType::f32, "", {}, {}});
  };
  for (const std::string& side : sides_of(model)) add(side);
  if (!all_layers) return schema;
  for (std::int64_t layer = -1; layer < model.num_hidden_layers; ++layer) {
    for (const std::string& side : sides_of(model)) add(layer_prefix(layer) + side);
    if (layer < 0 || !model.use_residual_attention) continue;
    for (const std::string& type : model.residual_attention_types) add(layer_prefix(layer) + "scores_" + type);
  }
  return schema;
}

namespace {

// A model and its task, encoding the micro-batches of one data set.
class DatasetEncoder {
 public:
  DatasetEncoder(const std::vector<std::string>& files, const std::filesystem::path& folder, const EncodeOn& on)
      : on_(on), fed_(files, folder, on.allow_incomplete) {
    micro_batch_tokens_ = micro_batch_tokens(fed_.document(), fed_.model(), on, *fed_.reader());
    fed_.load(on.device, on.types);
  }

  const EncoderConfig& model() const { return fed_.model(); }
  const ParameterSet& parameters() const { return fed_.parameters(); }
  const std::shared_ptr<const data::DatasetReader>& reader() const { return fed_.reader(); }
  DatasetPass pass() const { return {fed_.reader(), fed_.where(), "encode", micro_batch_tokens_}; }

  std::vector<data::Example> rows_of(Examples examples) const {
    Tape tape(Recording::off);
    const EncoderInput input = fed_.feed(tape, examples);
    Encoded encoded(examples, input);
    ForwardOptions options;
    if (on_.all_layers) {
      options.watch = [&](std::int64_t layer, const Tensor& of_long, const Tensor& of_global,
                          const ExternalScores& scores) {
        encoded.put_states(layer_prefix(layer), of_long, of_global);
        encoded.put_scores(layer_prefix(layer) + "scores_", scores);
      };
    }
    const EncoderStates states = fed_.encoder().forward(tape, input, options);
    const auto on_host = [](const Var& of) { return of.defined() ? of.value().to(Device::cpu) : Tensor(); };
    encoded.put_states("", on_host(states.long_states), on_host(states.global_states));
    return encoded.rows();
  }

 private:
  EncodeOn on_;
  FedEncoder fed_;
  std::int64_t micro_batch_tokens_ = 0;
};

// Writes the rows of the batch one by one: this process's and, in the first process, after them those of all others.
void write_batch(const DatasetEncoder& encoder, const data::LoadedBatch& batch, data::DatasetWriter* writer) {
  prepare::ByteWriter bytes;
  if (any_of(processes(), StopSignal::requested())) {
    throw Interrupted("etc encode: stopped before the end; no file was written");
  }
  for (const auto& micro_batch : batch.micro_batches) {
    if (processes().size() == 1 && StopSignal::requested()) {
      throw Interrupted("etc encode: stopped before the end; no file was written");
    }
    for (const data::Example& row : encoder.rows_of(micro_batch)) {
      if (writer != nullptr) writer->append(row);
      if (writer == nullptr) bytes.put(row);
    }
  }
  if (processes().size() == 1) return;
  const std::vector<std::string> all = collect(processes(), bytes.text());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    for (prepare::ByteReader rows(all[rank]); !rows.at_end();) writer->append(rows.get<data::Example>());
  }
}

}  // namespace

void encode_dataset(const std::vector<std::string>& files, const std::filesystem::path& folder, const EncodeOn& on,
                    const std::filesystem::path& output) {
  const DatasetEncoder encoder(files, folder, on);
  const Json settings = {{"model", encoder.model().to_json()}, {"all layers", on.all_layers}};
  const DatasetPass pass = agreed_pass(encoder.pass(), encoder.parameters(), settings);
  std::optional<data::DatasetWriter> writer;
  if (processes().first()) {
    writer.emplace(output, encoded_schema(encoder.model(), on.all_layers),
                   output_info(encoder.reader()->info(), encoder.model()));
  }
  data::LoaderOptions order = evaluation_order(pass.micro_batch_tokens);
  order.batch_examples *= processes().size();
  order.rank = processes().rank();
  order.ranks = processes().size();
  data::Loader loader(encoder.reader(), order);
  const StopSignal stop_signal;
  Progress progress("encode", encoder.reader()->size(), "examples");
  std::int64_t done = 0;
  for (data::LoadedBatch batch; loader.next(batch);) {
    write_batch(encoder, batch, writer ? &*writer : nullptr);
    progress.update(done += batch.all_examples);
  }
  progress.finish();
  if (writer) writer->finish(encoder.reader()->info().source_files, done, 0, 0);
}

}  // namespace etc::cli
