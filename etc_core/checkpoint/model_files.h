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

#include "etc_core/base/json_fwd.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/parameters.h"

namespace etc {

// Which tensors of model and file must correspond.
enum class Match {
  exact,    // every parameter must be in the file, every tensor of the file must be a parameter
  encoder,  // the same for the encoder's tensors only; heads of model and file are ignored
};

// The whole config.json of a model directory. Throws Error, which says what the path is instead, if it is none, and
// UsageError when the file has no section "model".
Json read_model_config(const std::filesystem::path& folder);

// Its section "model", strict and validated.
ModelConfig read_encoder_config(const std::filesystem::path& folder);
// The same for a model that must be an ETC.
EtcConfig read_etc_config(const std::filesystem::path& folder);

// A file in an exported folder: section "data" of the model's config.json, if that names a vocabulary.
inline constexpr const char* kExportFile = "export.json";

// Possible names of the vocabulary files beside a model, according to its config.json (or kExportFile): none if it
// names none; a byte-level vocabulary may also have its merges.
std::vector<std::string> vocabulary_names(const Json& config);

// Names of files in a model folder that belong to the program but are not written at every save: the vocabulary named
// by its config.json. Empty if there is no model. For AtomicFolder.
std::vector<std::string> own_files(const std::filesystem::path& folder);

// Copies the files for raw texts of a model directory into another folder: own_files() and those of kept_names.h, as far
// as they exist. Throws Error.
void copy_text_files(const std::filesystem::path& model, const std::filesystem::path& folder);

// Whether the tensor belongs to the encoder, by its name of etc-core 12.2 or 12.3 or, of an encoder-decoder,
// seq2seq/layers.h; everything else belongs to a head, a decoder or another program.
bool is_encoder_tensor(std::string_view name);

// Whether the tensor belongs to a head of pre-training (pretraining 1.4, 2.4). Such names mean the same in every model
// that has them; those of other heads do not ("output_weights").
bool is_pretraining_tensor(std::string_view name);

// Throws Error "<where>: <name> <shape>: expected finite weights, …" with the first element that is nan or infinite.
void require_finite(const std::string& where, const Parameter& parameter);

// Fills each parameter by calling read(name, out, seen) with the name beside it, for several parameters at once on
// several threads. `read` must pass the numbers to `seen` as they are read (tensor_file.h), so that they are checked
// while they are in the processor's cache. Throws like require_finite.
void fill_parameters(const std::string& where, std::vector<std::pair<Parameter*, std::string>> sources,
                     const std::function<void(const std::string& name, float* out, const NumbersRead& seen)>& read);

// Files that belong to a model beside its weights, such as its vocabulary: name → bytes.
using MoreFiles = std::map<std::string, std::string>;

// Writes config.json, model.safetensors and `more` into an existing folder (such as an AtomicFolder's). `config` is the
// whole document with its section "model". Throws Error for parameters without a value. `written`: see
// TensorFileWriter::write.
void write_model(const std::filesystem::path& folder, const Json& config, const ParameterSet& parameters,
                 const MoreFiles& more = {}, const std::function<void(std::int64_t tensors)>& written = {});

// Creates or atomically replaces the model directory. Files that somebody else put into it are kept; an older
// vocabulary of the model is not.
void save_model(const std::filesystem::path& folder, const Json& config, const ParameterSet& parameters,
                const MoreFiles& more = {});

// Fills the parameters from a file of tensors (F32, F16, BF16), several at once. The position tables are found with and
// without the model prefix (etc-core 12.2).
// rows: for a parameter whose shape differs from the file's only in the number of rows, returns the file's row for each
//   row; an empty result makes the difference an error. Null: every difference is an error.
// Errors: tensors that do not correspond (all of them listed by name and shape), other shapes, nan or inf (naming
//   tensor and element). On an error some parameters may have been filled already.
using RowChoice = std::function<std::vector<std::int64_t>(const Parameter& parameter)>;
void load_parameters(const std::filesystem::path& file, ParameterSet& parameters, Match match = Match::exact,
                     const RowChoice& rows = {});

// The same for inference: large F32 tensors that are aligned to 64 bytes, as TensorFileWriter stores them, use the
// mapped file (TensorFileReader::map_tensor), others are copied. Values are then read-only, and the file must not be
// shortened or overwritten in place as long as they exist.
void map_parameters(const std::filesystem::path& file, ParameterSet& parameters, Match match = Match::exact);

// Fills the parameters of pre-training heads that are in the file, and returns their names. Throws Error like
// load_parameters when shapes differ or numbers are not finite.
std::vector<std::string> load_pretraining_heads(const std::filesystem::path& file, ParameterSet& parameters);

}  // namespace etc
