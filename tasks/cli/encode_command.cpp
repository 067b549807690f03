// etc encode: hidden states of a model, for prepared data or for given input arrays (so that the numbers can be
// verified externally).
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/h5/array_file.h"
#include "data/text/sha256.h"
#include "etc_core/base/error.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/progress.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/encode_dataset.h"
#include "tasks/cli/encode_inputs.h"
#include "tasks/cli/encode_text.h"
#include "tasks/cli/inference_options.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/refused_options.h"
#include "tasks/prepare/bytes.h"
#include "tasks/train/inference_fit.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/stop_signal.h"

namespace etc::cli {

namespace {

constexpr const char* kExamples = R"(Examples:
  etc encode --inputs inputs.h5 --model run/best --output states.h5
  etc encode --inputs inputs.h5 --model run/best --output states.h5 --all-layers
  etc encode --data dev.h5 --model run/best --output states.h5
  etc encode --text texts.jsonl --model run/best --states mean --output vectors.npy
  echo '{"text": "The harbour is old."}' | etc encode --text - --model run/best --output -

--text takes JSON lines, each a string or an object with "text" and, if wanted, "id", and encodes one text after the
other: --states mean is a vector a text, the mean of the long states of its sentences (without CLS); long a row a
token; global a row a sentence. The output is JSON lines (-, .jsonl: written as they come), NumPy's (.npy;
OUTPUT.offsets.npy says which rows are whose) or HDF5 (.h5). It says how many tokens of each text were read and how
many were cut.

--data takes prepared data and writes their layout: /examples/<name>/values and offsets, with the names id,
long_token_ids, global_token_ids, long and global; values of long from offsets[i] to offsets[i+1] are the states
[L, H] of example i. With --all-layers also embedding_{long,global}, layer_<i>_{long,global} and
layer_<i>_scores_{l2l,l2g,g2g,g2l}.

The file of --inputs has a group "inputs" with integer arrays token_ids [B, L] and global_token_ids [B, G] and, if
wanted, segment_ids, position_ids, global_segment_ids, global_position_ids, {l2l,l2g,g2g,g2l}_att_mask (0 or 1),
{l2l,l2g,g2g,g2l}_relative_att_ids, and float arrays long_embedding_adder and global_embedding_adder. For a dense
encoder nothing of global tokens, and self_att_mask [B, L, L]. Missing segment_ids are 1 for an ETC's long tokens, else 0.)";

struct EncodeOptions : InferenceOptions {
  std::string inputs;
  std::vector<std::string> data;
  EncodeTextOptions text;
  std::int64_t max_long_tokens = 0;
  std::string vocab, splitter;
  std::string model, output;
  bool all_layers = false;
};

// Receives an array of one example: the name and shape of the array of the whole batch, and the example's numbers.
using TakeArray =
    std::function<void(const std::string& name, const std::vector<std::int64_t>& shape, const Tensor& values)>;

// The arrays of one example.
class ExampleArrays {
 public:
  // heads: N
  ExampleArrays(const EncodeInputs& inputs, std::int64_t heads, TakeArray take)
      : inputs_(inputs), heads_(heads), take_(std::move(take)) {}

  // values [rows, columns] of an example, for [B, rows, columns].
  void take_states(const std::string& name, const Tensor& values) const {
    take_(name, {inputs_.batch(), values.rows(), values.cols()}, values);
  }

  // Scores of one example are [N, queries, columns] in every type: [B, N, queries, columns] in the file. The window
  // type has its shape in `values`; of other types the first and the last letter tell whether they are global tokens (g).
  void take_scores(const std::string& name, const std::string& type, const Tensor& values) const {
    if (!values) return;
    const auto tokens = [&](char letter) { return letter == 'g' ? inputs_.globals() : inputs_.length(); };
    const bool window = values.rank() == 3;
    const std::int64_t queries = window ? values.dim(1) : tokens(type.front());
    const std::int64_t columns = window ? values.dim(2) : tokens(type.back());
    take_(name, {inputs_.batch(), heads_, queries, columns}, values);
  }

 private:
  const EncodeInputs& inputs_;
  std::int64_t heads_;
  TakeArray take_;
};

// Writes the arrays of successive examples into arrays of the whole batch, which are created when first seen.
class StatesFile {
 public:
  explicit StatesFile(const std::string& path) : file_(path) {}

  void write(std::int64_t b, const std::string& name, const std::vector<std::int64_t>& shape, const float* values) {
    const std::string path = "outputs/" + name;
    if (made_.insert(path).second) file_.create(path, shape);
    file_.write_rows(path, b, 1, values);
  }
  void finish() { file_.finish(); }

 private:
  data::ArrayFileWriter file_;
  std::set<std::string> made_;
};

// Throws Error unless each input (all have the same size) fits into the memory limit.
void require_fit(const EncodeInputs& inputs, const EncoderConfig& config, const EncodeOn& on) {
  InferenceFit fit("etc encode", on.memory_limit, on.device, config, on.types);
  const CountedCall call = [&](const std::function<void()>& loaded) {
    ParameterSet parameters;
    const auto encoder = config.make_encoder(parameters);
    for (const auto& parameter : parameters.all()) parameter->allocate();
    encoder->release_kernels(on.types);
    loaded();
    ForwardOptions options;
    if (on.all_layers) options.watch = [](std::int64_t, const Tensor&, const Tensor&, const ExternalScores&) {};
    Tape tape(Recording::off);
    encoder->forward(tape, inputs.example(0), options);
  };
  if (!fit.fits(call)) fit.refuse("an example of the file", inputs.length(), inputs.globals(), call);
}

void encode_example(Encoder& encoder, const EncoderInput& input, const ExampleArrays& arrays, bool all_layers) {
  ForwardOptions forward;
  if (all_layers) {
    forward.watch = [&](std::int64_t layer, const Tensor& of_long, const Tensor& of_global,
                        const ExternalScores& scores) {
      const std::string prefix = layer < 0 ? "embedding_" : "layer_" + std::to_string(layer) + "/";
      arrays.take_states(prefix + "long", of_long);
      if (of_global) arrays.take_states(prefix + "global", of_global);
      for (const auto& [type, values] : scores) arrays.take_scores(prefix + "scores_" + type, type, values);
    };
  }
  Tape tape(Recording::off);
  const EncoderStates output = encoder.forward(tape, input, forward);
  arrays.take_states("long", output.long_states.value().to(Device::cpu));
  if (output.global_states.defined()) arrays.take_states("global", output.global_states.value().to(Device::cpu));
}

// Writes the arrays of another process's example, in the order in which they were made.
void write_arrays(const std::string& sent, std::int64_t b, StatesFile& file) {
  for (prepare::ByteReader in(sent); !in.at_end();) {
    const auto name = in.get<std::string>();
    const auto shape = in.get<std::vector<std::int64_t>>();
    file.write(b, name, shape, in.get<std::vector<float>>().data());
  }
}

// encode: makes the arrays of example b. In every round each process encodes one example; the first process writes
// them.
void write_examples(const EncodeOptions& options, std::int64_t batch,
                    const std::function<void(std::int64_t b, const TakeArray& take)>& encode) {
  std::optional<StatesFile> file;
  if (processes().first()) file.emplace(options.output);
  Progress progress("encode", batch, "examples");
  const StopSignal stop_signal;
  const std::int64_t size = processes().size();
  for (std::int64_t first = 0; first < batch; first += size) {
    stop_if_told(processes(), "etc encode: stopped before the end; no file was written");
    const std::int64_t own = first + processes().rank();
    prepare::ByteWriter made;
    const TakeArray take = [&](const std::string& name, const std::vector<std::int64_t>& shape, const Tensor& values) {
      if (file) return file->write(own, name, shape, values.data());
      made.put(name);
      made.put(shape);
      made.put(std::vector<float>(values.data(), values.data() + values.size()));
    };
    try {
      if (own < batch) encode(own, take);
    } catch (const Error& error) {
      // The encoder sees one example at a time and numbers it 0.
      fail("encode: " + options.inputs, "in example {} of the file: {}", own, error.what());
    }
    const std::vector<std::string> all = collect(processes(), made.text());
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      write_arrays(all[rank], first + static_cast<std::int64_t>(rank), *file);
    }
    progress.update(std::min(first + size, batch));
  }
  progress.finish();
  if (file) file->finish();
}

// Encodes padded examples, one after the other.
void encode_inputs(const EncodeOptions& options, const EncodeOn& on) {
  const std::filesystem::path folder = options.model;
  const ModelConfig config = read_encoder_config(folder);
  const EncodeInputs inputs(options.inputs, *config);
  if (inputs.batch() == 0) fail("encode: " + options.inputs, "expected at least one example, got none");
  if (on.memory_limit > 0) require_fit(inputs, *config, on);
  ParameterSet parameters;
  const auto encoder = config->make_encoder(parameters);
  map_parameters(folder / "model.safetensors", parameters, Match::encoder);
  parameters.to(on.device);
  encoder->release_kernels(on.types);

  require_equal_models(parameters, config->to_json(), {{"inputs", data::sha256_of_file(options.inputs)}});

  const auto encode = [&](std::int64_t b, const TakeArray& take) {
    encode_example(*encoder, inputs.example(b), ExampleArrays(inputs, config->num_attention_heads, take),
                   options.all_layers);
  };
  write_examples(options, inputs.batch(), encode);
}

void check_paths(const EncodeOptions& options) {
  CommandPaths paths("etc encode");
  paths.reads("--inputs", options.inputs);
  paths.reads("--data", options.data);
  for (const std::string& text : options.text.inputs) paths.reads_or_standard_input("--text", text);
  paths.reads("--vocab", options.vocab);
  paths.reads_splitter("--splitter", options.splitter);
  paths.reads_model("--model", options.model);
  paths.writes_or_standard_output("--output", options.output);
  if (!options.text.inputs.empty()) {
    EncodeTextOptions text = options.text;
    text.output = options.output;
    paths.writes("--output (its offsets)", offsets_file(text));
  }
  paths.writes("--trace", options.profile.trace);
  paths.check();
}

// Arrays of examples are written as HDF5, so other extensions are refused.
void refuse_name_of_texts(const std::string& output) {
  for (const std::string extension : {".npy", ".jsonl", ".json"}) {
    if (std::filesystem::path(output).extension() != extension) continue;
    fail_usage("etc encode", "--output {}: --data and --inputs are written as HDF5, {} goes with --text: expected *.h5",
               output, extension);
  }
}

void run_encode(const Command& command, const EncodeOptions& options) {
  const bool of_text = !options.text.inputs.empty();
  if (!options.inputs.empty() + !options.data.empty() + of_text != 1)
    fail_usage("etc encode", "expected either --inputs or --data, or --text");
  if (of_text && options.all_layers) fail_usage("etc encode", "--all-layers goes with --inputs or --data");
  if (!of_text) {
    refuse_given(command, "etc encode", "--data or --inputs",
                 {"--states", "--max-long-tokens", "--vocab", "--splitter"});
  }
  if (options.data.empty()) refuse_given(command, "etc encode", "--text or --inputs", {"--allow-incomplete"});
  if (!of_text && options.output == "-") fail_usage("etc encode", "--output: expected a file, - goes with --text");
  check_paths(options);
  if (!of_text) refuse_name_of_texts(options.output);
  if (options.threads > 0) set_thread_count(options.threads);
  const Device device = open_device(options.device).device;
  Profile profile(options.profile);
  const EncodeOn on{device, chosen_types(options.compute, options.scores, device),
                    take_memory_limit(options.memory_limit, device), options.all_layers, options.allow_incomplete};
  if (of_text) {
    EncodeTextOptions text = options.text;
    text.output = options.output;
    if (processes().size() > 1) {
      require_equal_work(
          {{"weights", data::sha256_of_file(std::filesystem::path(options.model) / "model.safetensors")}}, nullptr);
    }
    encode_texts(TextEncoder("etc encode", {.model = options.model,
                                            .vocab = options.vocab,
                                            .splitter = options.splitter,
                                            .device = on.device,
                                            .types = on.types,
                                            .memory_limit = on.memory_limit,
                                            .max_long_tokens = options.max_long_tokens}),
                 text);
  } else if (options.data.empty()) {
    encode_inputs(options, on);
  } else {
    encode_dataset(options.data, options.model, on, options.output);
  }
  log_peak_memory(device);
  profile.finish();
  if (options.output != "-") print_summary({options.output}, fmt::format("output: {}\n", options.output));
}

}  // namespace

void add_encode_command(Program& program) {
  program.add(
      "encode", "write a model's hidden states for texts, prepared data or given inputs", [](const Command& command) {
        auto options = std::make_shared<EncodeOptions>();
        command.footer(kExamples);
        command.option("--inputs", options->inputs, "HDF5 file with padded input arrays");
        command.option("--data", options->data, "prepared data, HDF5; several files are shards of one data set");
        command.option("--model", options->model, "model folder, or a run, whose best checkpoint is taken").required();
        command.option("--text", options->text.inputs,
                       "texts, JSON lines or an array, plain or gzip; -: standard input");
        command
            .option("--states", options->text.states,
                    "with --text: which states: of every token, of every sentence, or a vector a text")
            .one_of({"long", "global", "mean"})
            .show_default();
        command
            .option("--max-long-tokens", options->max_long_tokens,
                    "with --text: most tokens of a text [4096, or the model's positions]")
            .at_least(1);
        command.option("--vocab", options->vocab,
                       "with --text: the vocabulary, where the model's folder does not hold it");
        command.option(
            "--splitter", options->splitter,
            "with --text: punkt:DIR, to split sentences with its tables instead of the folder's or ICU's rules");
        command
            .option("--output", options->output,
                    "HDF5 file to write; with --text also .jsonl, .json, .npy, or - for standard output")
            .required();
        command.flag(
            "--all-layers", options->all_layers,
            "also the states after the embedding stage and every layer, and with residual attention the scores "
            "carried after each layer");
        add_inference_options(command, *options);
        command.action([options, command] {
          options->model = model_folder(options->model);
          run_encode(command, *options);
        });
      });
}

}  // namespace etc::cli
