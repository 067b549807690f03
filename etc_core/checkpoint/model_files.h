// A model directory: config.json (section "model": the fields of an encoder; other sections belong to task and data)
// and model.safetensors (parameters under their names of etc-core 12).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "etc_core/base/json.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/parameters.h"

namespace etc {

// Which tensors of model and file must correspond.
enum class Match {
  exact,    // every parameter is in the file, every tensor of the file is a parameter
  encoder,  // so for the encoder's tensors; heads are left as they are, in the model and in the file
};

// The whole config.json of a model directory. Throws UsageError when it has no section "model".
Json read_model_config(const std::filesystem::path& folder);

// Its section "model", strict and validated.
ModelConfig read_encoder_config(const std::filesystem::path& folder);
// The same of a model that must be an ETC.
EtcConfig read_etc_config(const std::filesystem::path& folder);

// In an exported folder: section "data" of the model's config.json, where it names a vocabulary.
inline constexpr const char* kExportFile = "export.json";

// The names that the files of the vocabulary beside a model may have, as its config.json (or kExportFile) says it: none
// when it says none; with a byte-level vocabulary there may be its merges, too.
std::vector<std::string> vocabulary_names(const Json& config);

// The names of files in a model folder that are the program's and that it does not write each time: the vocabulary its
// config.json names. Empty where there is no model. For AtomicFolder.
std::vector<std::string> own_files(const std::filesystem::path& folder);

// Whether the tensor belongs to the encoder, by its name of etc-core 12.2 or 12.3 or, of an encoder-decoder, seq2seq/layers.h;
// everything else is a head's, a decoder's or a stranger's.
bool is_encoder_tensor(std::string_view name);

// Whether the tensor belongs to a head of pre-training (pretraining 1.4, 2.4). Such names mean the same in every model that
// has them; those of other heads do not ("output_weights").
bool is_pretraining_tensor(std::string_view name);

// Throws Error "<where>: <name> <shape>: expected finite weights, …" with the first element that is nan or infinite.
void require_finite(const std::string& where, const Parameter& parameter);

// Fills each parameter with the numbers that read(name, out, seen) gives for the name beside it: several parameters at
// once, so on several threads. `read` tells `seen` of the numbers as they come (tensor_file.h): they are searched while
// the processor's cache holds them. Throws as require_finite.
void fill_parameters(const std::string& where, std::vector<std::pair<Parameter*, std::string>> sources,
                     const std::function<void(const std::string& name, float* out, const NumbersRead& seen)>& read);

// Files that belong to a model beside its weights, such as its vocabulary: name → bytes.
using MoreFiles = std::map<std::string, std::string>;

// Writes config.json, model.safetensors and `more` into an existing folder (of an AtomicFolder, say). `config` is the
// whole document with its section "model". Parameters without a value are an Error. `written`: TensorFileWriter::write.
void write_model(const std::filesystem::path& folder, const Json& config, const ParameterSet& parameters,
                 const MoreFiles& more = {}, const std::function<void(std::int64_t tensors)>& written = {});

// Replaces or makes the model directory in one step. What somebody put into it stays, an older vocabulary of the
// model's own does not.
void save_model(const std::filesystem::path& folder, const Json& config, const ParameterSet& parameters,
                const MoreFiles& more = {});

// Fills the parameters from a file of tensors (F32, F16, BF16), several at once. The position tables are found with and
// without the model prefix (etc-core 12.2).
// rows: of a parameter whose shape differs from the file's in its rows alone, which row of the file each row is; empty:
//   the difference is an error. Null: every difference is.
// Errors: tensors that do not correspond (all of them listed by name and shape), other shapes, nan or inf (naming
//   tensor and element). On an error some parameters may have been filled already.
using RowChoice = std::function<std::vector<std::int64_t>(const Parameter& parameter)>;
void load_parameters(const std::filesystem::path& file, ParameterSet& parameters, Match match = Match::exact,
                     const RowChoice& rows = {});

// The same for inference: large tensors of F32 that lie on 64-byte lines, as our writer's do, are read where the file
// has them (TensorFileReader::map_tensor), others are copied. Values are then read-only, and the file must not be
// shortened or overwritten in place until they are gone.
void map_parameters(const std::filesystem::path& file, ParameterSet& parameters, Match match = Match::exact);

// Fills those parameters of pre-training heads that the file has, and returns their names. Throws Error as
// load_parameters where shapes differ or numbers are not finite.
std::vector<std::string> load_pretraining_heads(const std::filesystem::path& file, ParameterSet& parameters);

}  // namespace etc
