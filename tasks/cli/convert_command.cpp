// etc convert: converts published checkpoints to model directories, and model directories to files for other tools.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/checkpoint/average.h"
#include "etc_core/checkpoint/convert/bert/dense_bert.h"
#include "etc_core/checkpoint/convert/bert/lift.h"
#include "etc_core/checkpoint/convert/converted_model.h"
#include "etc_core/checkpoint/convert/dense/foreign_encoder.h"
#include "etc_core/checkpoint/convert/export.h"
#include "etc_core/checkpoint/convert/model_type.h"
#include "etc_core/checkpoint/convert/tf_etc.h"
#include "etc_core/checkpoint/fold_admin_model.h"
#include "etc_core/checkpoint/replaceable.h"
#include "tasks/cli/command_paths.h"
#include "tasks/cli/commands.h"
#include "tasks/cli/convert_vocabulary.h"
#include "tasks/cli/convert_watch.h"
#include "tasks/cli/processes.h"
#include "tasks/cli/refused_options.h"
#include "tasks/cli/threads_option.h"
#include "tasks/output.h"
#include "tasks/train/model_folder.h"
#include "tasks/train/run_directory.h"

namespace etc::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kExamples = R"(Examples:
  etc convert --from tf etc_base/model.ckpt --config etc_base/etc_config.json --output etc_base_model
  etc convert --from bert bert-base-uncased --output lifted
  etc convert --from roberta roberta-large --vocab spiece.model --output lifted
  etc convert --from bert bert-base-uncased --as dense --output dense
  etc convert --from t5 t5-small --as dense --output dense
  etc convert --to safetensors run/best --output for_python
  etc convert --to tf-names run/best --output for_tensorflow
  etc convert --to bert dense --output bert
  etc convert --to admin-folded run/best --output for_translating
  etc convert --average run_1/best run_2/best run_3/best --output mean

A folder stands for the checkpoint in it: model.safetensors, pytorch_model.bin (either also as shards with their
.index.json), or PREFIX.index of a TensorFlow checkpoint. What happened to every tensor is printed, and in
conversion.json of the output.)";

struct ConvertOptions {
  std::string from, to;
  std::string as = "etc";
  fs::path input, output;
  std::vector<fs::path> average;
  fs::path config, source_config;
  fs::path vocab, source_vocab;
  bool overwrite = false;
  bool without_heads = false;
  bool with_optimizer_slots = false;
  bool exact = false;
  bool position_mean = false;
  bool allow_partial_vocabulary = false;
  bool allow_missing = false;
  std::string residual_attention;
  std::string relative_init = "zero";
  std::uint64_t seed = 1;
  int threads = 0;
};

// The given file, or the first of these names beside the checkpoint.
fs::path file_beside(const fs::path& given, const fs::path& input, const std::vector<std::string>& names,
                     const std::string& option) {
  if (!given.empty()) return given;
  const fs::path folder = fs::is_directory(input) ? input : input.parent_path();
  for (const std::string& name : names) {
    if (fs::exists(folder / name)) return folder / name;
  }
  fail_usage("etc convert", "no {} beside {}: give {}", fmt::join(names, " or "), input.string(), option);
}

// config.json of a model directory. The vocabulary's hash, if known, lets `etc train --init-from` and `etc encode`
// refuse data that were prepared with another vocabulary.
Json document(const EncoderConfig& config, const ModelVocabulary& vocabulary) {
  Json json = {{"model", config.to_json()}};
  if (Json section = vocabulary.data_section(); !section.is_null()) json["data"] = std::move(section);
  return json;
}

void finish(const ConvertOptions& options, const convert::ConvertedModel& model,
            const convert::ConversionReport& report, Watch& watch) {
  convert::save_converted_model(options.output, model, report,
                                watch.writing(static_cast<std::int64_t>(model.parameters.all().size())));
  print("{}output: {}\n", report.text(), options.output.string());
}

// A published etc_config.json, or the config.json of a model directory, whose section `model` has the same fields.
EtcConfig etc_config_of(const fs::path& file) {
  const Json json = read_json_file(file);
  const bool ours = json.is_object() && json.contains("model");
  if (ours && model_kind_of(json["model"]) != "etc") {
    fail_usage("config: " + file.string(), "model: kind: expected etc, got {}", model_kind_of(json["model"]));
  }
  EtcConfig config =
      etc_config_from_json(ours ? json["model"] : json, "config: " + file.string() + (ours ? ": model" : ""),
                           ours ? UnknownKeys::refuse : UnknownKeys::warn);
  config.validate();
  return config;
}

void convert_tf(const ConvertOptions& options) {
  Watch watch;
  const WatchedSource source(convert::open_tensors(options.input), watch);
  const fs::path file = file_beside(options.config, options.input, {"etc_config.json"}, "--config");
  EtcConfig config = etc_config_of(file);
  const ModelVocabulary vocabulary = options.vocab.empty()
                                         ? vocabulary_beside(options.input, VocabularyNames::any, config.vocab_size)
                                         : vocabulary_of(options.vocab);
  if (vocabulary.tokenizer && vocabulary.tokenizer->vocab_size() > config.vocab_size) {
    fail_usage("etc convert", "--vocab {}: expected at most vocab_size={} pieces, got {}", options.vocab.string(),
               config.vocab_size, vocabulary.tokenizer->vocab_size());
  }
  ParameterSet parameters;
  convert::TfEtcExtras extras;
  const convert::ConversionReport report = convert::read_tf_etc(source, config,
                                                                {.keep_heads = !options.without_heads,
                                                                 .with_optimizer_slots = options.with_optimizer_slots,
                                                                 .allow_missing = options.allow_missing,
                                                                 .seed = options.seed},
                                                                parameters, extras);
  warn_without_vocabulary(vocabulary, "--vocab");
  const convert::ConvertedModel model{document(config, vocabulary), parameters, extras, vocabulary.files};
  finish(options, model, report, watch);
}

// The vocabulary of a BERT's token table after the conversion: that of --vocab, into whose order the rows are permuted,
// otherwise its own.
ModelVocabulary bert_vocabulary(const ConvertOptions& options, convert::BertKind kind, std::int64_t rows) {
  if (!options.vocab.empty()) return vocabulary_of(options.vocab);
  const auto names = kind == convert::BertKind::roberta ? VocabularyNames::rows : VocabularyNames::wordpiece;
  if (!options.source_vocab.empty()) return own_vocabulary(options.source_vocab, names, rows);
  return vocabulary_beside(options.input, names, rows);
}

convert::VocabularyMatch match(const ConvertOptions& options, const convert::BertConfig& bert, convert::BertKind kind,
                               const data::Tokenizer& tokenizer) {
  const std::vector<std::string> names = kind == convert::BertKind::roberta ? std::vector<std::string>{"vocab.json"}
                                                                            : std::vector<std::string>{"vocab.txt"};
  const fs::path file = file_beside(options.source_vocab, options.input, names, "--source-vocab");
  const auto pieces = convert::read_source_vocabulary(file, bert.vocab_size);
  return convert::match_vocabularies(pieces, kind, tokenizer.vocab_size(), [&](const std::string& piece) {
    try {
      return std::optional<std::int64_t>(tokenizer.piece_id(piece));
    } catch (const Error&) {
      return std::optional<std::int64_t>();
    }
  });
}

// BERT's own configuration. Published RealFormer configurations do not say that the scores are residual, so
// --residual-attention says it.
Json source_config(const ConvertOptions& options, const fs::path& file) {
  Json json = read_json_file(file);
  if (!options.residual_attention.empty() && json.is_object()) {
    json["use_residual_attention"] = options.residual_attention != "none";
    json["use_running_mean"] = options.residual_attention == "mean";
  }
  return json;
}

void convert_bert(const ConvertOptions& options) {
  convert::LiftOptions lift;
  lift.kind = options.from == "roberta" ? convert::BertKind::roberta : convert::BertKind::bert;
  lift.exact = options.exact;
  lift.normal_relative_tables = options.relative_init == "normal";
  lift.position_mean = options.position_mean;
  lift.keep_heads = !options.without_heads;
  lift.allow_partial_vocabulary = options.allow_partial_vocabulary;
  lift.seed = options.seed;
  if (options.exact && !options.vocab.empty()) {
    fail_usage("etc convert", "--exact keeps the order of the vocabulary: expected no --vocab");
  }
  if (options.exact && options.position_mean) {
    fail_usage("etc convert", "--exact keeps the positions: expected no --position-mean");
  }
  if (lift.kind == convert::BertKind::roberta && !options.exact && options.vocab.empty()) {
    fail_usage(
        "etc convert",
        "--from roberta: expected --vocab, the SentencePiece model that data is prepared with (RoBERTa's rows are "
        "put into its order)");
  }
  Watch watch;
  const WatchedSource source(convert::open_tensors(options.input), watch);
  const fs::path file =
      file_beside(options.source_config, options.input, {"config.json", "bert_config.json"}, "--source-config");
  const Json json = source_config(options, file);
  const std::string where = "config: " + file.string();
  convert::require_model_type(json, where, options.from);
  const convert::BertConfig bert = convert::bert_config_from_json(json, where, lift.kind);

  EtcConfig config = convert::etc_config_for(bert, lift.kind, options.exact);
  const ModelVocabulary vocabulary = bert_vocabulary(options, lift.kind, bert.vocab_size);
  std::optional<convert::VocabularyMatch> matched;
  if (!options.vocab.empty()) {
    matched = match(options, bert, lift.kind, *vocabulary.tokenizer);
    config.vocab_size = vocabulary.tokenizer->vocab_size();
  }
  if (!options.config.empty()) config = etc_config_of(options.config);
  config.validate();
  ParameterSet parameters;
  const convert::ConversionReport report =
      convert::lift_bert(source, bert, config, matched ? &*matched : nullptr, lift, parameters);
  warn_without_vocabulary(vocabulary, "--vocab");
  const convert::ConvertedModel model{document(config, vocabulary), parameters, convert::TfEtcExtras(),
                                      vocabulary.files};
  finish(options, model, report, watch);
}

// The vocabulary of an encoder that is converted unchanged.
ModelVocabulary dense_vocabulary(const ConvertOptions& options, std::int64_t rows) {
  const auto names = options.from == "roberta"                         ? VocabularyNames::rows
                     : options.from == "xlnet" || options.from == "t5" ? VocabularyNames::any
                                                                       : VocabularyNames::wordpiece;
  return options.source_vocab.empty() ? vocabulary_beside(options.input, names, rows)
                                      : own_vocabulary(options.source_vocab, names, rows);
}

// Converts a foreign encoder to an equivalent dense one.
void convert_as_dense(const ConvertOptions& options) {
  Watch watch;
  const WatchedSource source(convert::open_tensors(options.input), watch);
  const fs::path file =
      file_beside(options.source_config, options.input, {"config.json", "bert_config.json"}, "--source-config");
  const convert::ForeignEncoder foreign =
      convert::foreign_encoder(options.from, source_config(options, file), "config: " + file.string(), source);
  foreign.config.validate();
  const ModelVocabulary vocabulary = dense_vocabulary(options, foreign.config.vocab_size);
  ParameterSet parameters;
  const convert::ConversionReport report = convert::read_foreign(source, foreign, !options.without_heads, parameters);
  warn_without_vocabulary(vocabulary, "--source-vocab");
  const convert::ConvertedModel model{document(foreign.config, vocabulary), parameters, convert::TfEtcExtras(),
                                      vocabulary.files};
  finish(options, model, report, watch);
}

// Options that have no effect in this kind of conversion are errors.
void refuse_all_but(const Command& command, const std::string& kind, const std::vector<std::string>& known) {
  std::vector<std::string> others = command.given();
  std::erase_if(others, [&](const std::string& name) { return std::count(known.begin(), known.end(), name) > 0; });
  refuse_given(command, "etc convert", kind, others);
}

// Refuses a run's folder or checkpoints: they are needed to resume the run.
void require_no_run(const fs::path& output) {
  fs::path folder = fs::weakly_canonical(fs::absolute(output));
  if (!folder.has_filename()) folder = folder.parent_path();  // "run/last/"
  const bool checkpoint = folder.filename() == "best" || folder.filename() == "last";
  if (is_run_folder(folder) || (checkpoint && is_run_folder(folder.parent_path()))) {
    fail_usage("etc convert", "--output {}: refusing to replace the folder or a checkpoint of a run: expected another",
               output.string());
  }
}

// Checks the paths before the work starts.
void check_paths(const ConvertOptions& options) {
  CommandPaths paths("etc convert");
  if (options.average.empty()) paths.reads("the checkpoint", options.input);
  for (const fs::path& model : options.average) paths.reads("--average", model);
  paths.reads("--config", options.config);
  paths.reads("--source-config", options.source_config);
  paths.reads("--vocab", options.vocab);
  paths.reads("--source-vocab", options.source_vocab);
  paths.replaces_folder("--output", options.output);
  paths.check();
  require_no_run(options.output);
  require_replaceable(options.output, options.overwrite);
}

// --from: a foreign checkpoint becomes a model directory.
void convert_from(const Command& command, const ConvertOptions& options) {
  const bool bert = options.from == "bert" || options.from == "roberta";
  std::vector<std::string> known = {"--from", "--as", "--output", "--overwrite", "--threads", "--without-heads"};
  const auto knows = [&](std::initializer_list<std::string> more) { known.insert(known.end(), more); };
  if (options.as == "dense") {
    if (options.from == "tf") {
      fail_usage("etc convert", "--as dense: expected --from {}, got tf", fmt::join(convert::foreign_families(), ", "));
    }
    knows({"--source-config", "--source-vocab"});
    if (bert) knows({"--residual-attention"});
    refuse_all_but(command, "--from " + options.from + " --as dense", known);
    convert_as_dense(options);
  } else if (options.from == "tf") {
    std::erase(known, "--as");
    knows({"--config", "--vocab", "--with-optimizer-slots", "--allow-missing", "--seed"});
    refuse_all_but(command, "--from tf", known);
    if (is_given(command, "--seed") && !options.allow_missing) {
      fail_usage("etc convert", "--seed: expected --allow-missing beside it: nothing else is initialised");
    }
    convert_tf(options);
  } else if (!bert) {
    fail_usage("etc convert", "--from {}: expected --as dense beside it: it cannot be lifted into an ETC",
               options.from);
  } else {
    knows({"--config", "--source-config", "--vocab", "--source-vocab", "--exact", "--position-mean", "--relative-init",
           "--seed", "--allow-partial-vocabulary", "--residual-attention"});
    refuse_all_but(command, "--from " + options.from, known);
    convert_bert(options);
  }
}

// --to: a model directory becomes files for other tools, or another model directory. Returns a message line.
std::string convert_to(const ConvertOptions& options, const fs::path& model,
                       const std::function<void(std::int64_t)>& written) {
  if (options.to == "bert") return convert::write_bert(model, options.output, written);
  if (options.to == "admin-folded") return fold_admin_model(model, options.output, written);
  const auto format = options.to == "tf-names" ? convert::ExportFormat::tf_names : convert::ExportFormat::safetensors;
  return convert::export_model(model, format, options.output, written);
}

void run_convert(const Command& command, const ConvertOptions& options) {
  if (options.threads > 0) set_thread_count(options.threads);
  if (options.average.empty()) {
    if (options.from.empty() == options.to.empty()) fail_usage("etc convert", "expected one of --from and --to");
    if (options.input.empty()) fail_usage("etc convert", "input is required");
  }
  check_paths(options);
  // As in other commands, a run stands for its best checkpoint.
  const fs::path model = options.to.empty() ? fs::path() : model_folder(options.input);
  if (!options.average.empty()) {
    refuse_all_but(command, "--average", {"--average", "--output", "--overwrite", "--threads"});
    if (!options.input.empty()) {
      fail_usage("etc convert", "{}: expected nothing beside the models of --average", options.input.string());
    }
    Watch watch;
    print("output: {}\n", average_models(options.average, options.output, watch.writing(0)));
  } else if (!options.to.empty()) {
    refuse_all_but(command, "--to", {"--to", "--output", "--overwrite", "--threads"});
    Watch watch;
    print("output: {}\n", convert_to(options, model, watch.writing(0)));
  } else {
    convert_from(command, options);
  }
}

}  // namespace

void add_convert_command(Program& program) {
  program.add(
      "convert", "read TensorFlow, BERT and RoBERTa checkpoints, write files for other tools",
      [](const Command& command) {
        auto options = std::make_shared<ConvertOptions>();
        command.footer(kExamples);
        command
            .option("--from", options->from,
                    "tf (a published ETC checkpoint), bert or roberta (lifted into ETC); with --as dense also nezha, "
                    "xlnet, t5 "
                    "(its encoder)")
            .one_of({"tf", "bert", "roberta", "nezha", "xlnet", "t5"});
        command.option("--as", options->as, "etc, or dense: the encoder that the checkpoint is, with its own positions")
            .one_of({"etc", "dense"})
            .show_default();
        command
            .option(
                "--to", options->to,
                "safetensors; tf-names (of an ETC: a TensorFlow checkpoint); bert (of a dense encoder: as PyTorch's "
                "libraries load it); admin-folded (of an encoder-decoder of norm admin: a model directory that "
                "computes "
                "the same, with the scales of its residual connections folded into norms and kernels)")
            .one_of({"safetensors", "tf-names", "bert", "admin-folded"});
        command.option("--average", options->average,
                       "instead: folders of models of one configuration, whose parameters' mean is written");
        command.option("input", options->input,
                       "checkpoint: a folder, a file, or the prefix of a TensorFlow checkpoint");
        command
            .option("--output", options->output, "folder to write: a model directory (--from, --average), files (--to)")
            .required();
        command.flag("--overwrite", options->overwrite, "replace a converted or exported model that is there already");
        command.option(
            "--config", options->config,
            "etc_config.json of the ETC model, or config.json of a model directory (default: beside a TensorFlow "
            "checkpoint; for BERT an ETC of the same sizes)");
        command.option("--source-config", options->source_config,
                       "BERT's own configuration (default: config.json or bert_config.json beside it)");
        command.option(
            "--vocab", options->vocab,
            "vocabulary that data is prepared with (BERT's rows are put into its order); default: vocab.txt or, for "
            "tf, *.model beside the checkpoint");
        command.option("--source-vocab", options->source_vocab,
                       "BERT's own vocabulary (default: vocab.txt, for RoBERTa vocab.json, beside it)");
        command.flag("--without-heads", options->without_heads, "leave task heads out: the encoder alone");
        command.flag("--with-optimizer-slots", options->with_optimizer_slots,
                     "write adam_m, adam_v and global_step into optimizer_slots.safetensors");
        command.flag("--exact", options->exact,
                     "compute what BERT computes: positions, token types and order of the vocabulary are kept");
        command.flag("--position-mean", options->position_mean, "add the mean position to the segment rows");
        command.option("--relative-init", options->relative_init, "zero or normal: the relative tables BERT has not")
            .one_of({"zero", "normal"})
            .show_default();
        command
            .option("--residual-attention", options->residual_attention,
                    "none, sum or mean: whether BERT's scores are residual (RealFormer), where its configuration does "
                    "not say it")
            .one_of({"none", "sum", "mean"});
        command.flag("--allow-missing", options->allow_missing,
                     "of tf: initialise the encoder's tensors that the checkpoint lacks, instead of refusing it");
        command.flag("--allow-partial-vocabulary", options->allow_partial_vocabulary,
                     "accept that fewer than 90 % of the pieces are found");
        command.option("--seed", options->seed, "seed of freshly initialised tensors").show_default();
        add_threads_option(command, options->threads);
        command.action([command, options] {
          require_one_process("etc convert", "it");
          run_convert(command, *options);
        });
      });
}

}  // namespace etc::cli
