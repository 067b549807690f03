#include "etc_core/checkpoint/model_files.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/finite.h"
#include "etc_core/base/json.h"
#include "etc_core/base/parallel.h"
#include "etc_core/base/shape.h"
#include "etc_core/base/version.h"
#include "etc_core/checkpoint/kept_names.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/resize_positions.h"

namespace etc {

namespace {

constexpr std::string_view kEncoderPrefix = "etc_document_bert/";
constexpr std::string_view kPositionPrefix = "position_emb_lookup_";
constexpr std::string_view kDensePrefixes[] = {"bert/embeddings/", "bert/encoder/"};  // the pooler counts as a head
constexpr std::string_view kSeq2SeqPrefixes[] = {"seq2seq/embeddings/tokens", "seq2seq/embeddings/source",
                                                 "seq2seq/encoder/"};  // the decoder counts as a head
constexpr std::string_view kPretrainingPrefixes[] = {"cls/predictions/", "cls/seq_relationship/", "cls/cpc/",
                                                     "bert/pooler/"};

bool begins_with(std::string_view name, std::string_view prefix) {
  return name.substr(0, prefix.size()) == prefix;
}

bool begins_with_one_of(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return begins_with(name, prefix); });
}

// The parameter's name in the file, or empty.
std::string name_in_file(const TensorFileReader& file, const std::string& name) {
  if (file.has(name)) return name;
  if (begins_with(name, kPositionPrefix)) {
    const std::string prefixed = std::string(kEncoderPrefix) + name;
    if (file.has(prefixed)) return prefixed;
  }
  return "";
}

std::string element_text(const std::vector<std::int64_t>& shape, std::int64_t index) {
  std::vector<std::int64_t> position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = index % shape[axis];
    index /= shape[axis];
  }
  return shape_text(position);
}

std::string in_message(const std::filesystem::path& file) {
  return "checkpoint: " + file.string();
}

}  // namespace

bool is_encoder_tensor(std::string_view name) {
  return begins_with(name, kEncoderPrefix) || begins_with(name, kPositionPrefix) ||
         begins_with_one_of(name, kDensePrefixes) || begins_with_one_of(name, kSeq2SeqPrefixes);
}

bool is_pretraining_tensor(std::string_view name) {
  return begins_with_one_of(name, kPretrainingPrefixes);
}

void require_finite(const std::string& where, const Parameter& parameter) {
  const float* values = parameter.value.data();
  const std::int64_t size = parameter.size();
  if (count_not_finite(values, size) == 0) return;
  const float* found = std::find_if(values, values + size, [](float x) { return !is_finite(x); });
  fail(where, "{} {}: expected finite weights, got {} at element {}", parameter.name, shape_text(parameter.shape),
       *found, element_text(parameter.shape, found - values));
}

void fill_parameters(const std::string& where, std::vector<std::pair<Parameter*, std::string>> sources,
                     const std::function<void(const std::string&, float*, const NumbersRead&)>& read) {
  // The largest first, so that the other threads do not have to wait for the token table at the end.
  std::stable_sort(sources.begin(), sources.end(),
                   [](const auto& a, const auto& b) { return a.first->size() > b.first->size(); });
  parallel_for(static_cast<std::int64_t>(sources.size()), [&](std::int64_t i) {
    const auto& [parameter, name] = sources[static_cast<std::size_t>(i)];
    bool finite = true;
    read(name, parameter->allocate().data(), [&finite](const float* numbers, std::int64_t count) {
      finite = finite && count_not_finite(numbers, count) == 0;
    });
    if (!finite) require_finite(where, *parameter);
  });
}

namespace {

// Says what a path that is given as a model is instead. A file config.json that cannot be opened is left to its reader.
void require_model_folder(const std::filesystem::path& folder) {
  std::error_code unreadable;
  if (std::filesystem::exists(folder / "config.json", unreadable) || unreadable) return;
  constexpr const char* kExpected = "expected a model folder, which `etc train` (as RUN/best) and `etc convert` write";
  if (!std::filesystem::exists(folder)) fail(folder.string(), "{}, found nothing", kExpected);
  if (!std::filesystem::is_directory(folder)) fail(folder.string(), "{}, found a file", kExpected);
  fail(folder.string(), "{}, found a folder without config.json", kExpected);
}

}  // namespace

Json read_model_config(const std::filesystem::path& folder) {
  require_model_folder(folder);
  const std::filesystem::path file = folder / "config.json";
  Json config = read_json_file(file);
  if (!config.is_object() || !config.contains("model")) {
    fail_usage("config: " + file.string(), "expected an object with a section \"model\"");
  }
  return config;
}

namespace {

// A text in section "data"; "" if missing.
std::string text_in_data(const Json& config, const char* key) {
  if (!config.is_object() || !config.contains("data") || !config["data"].is_object()) return "";
  const Json text = config["data"].value(key, Json());
  return text.is_string() ? text.get<std::string>() : "";
}

}  // namespace

std::vector<std::string> vocabulary_names(const Json& config) {
  const std::string name = text_in_data(config, "vocab_file");
  if (name.empty()) return {};
  if (name == "vocab.json") return {"vocab.json", "merges.txt"};
  return {name};
}

std::vector<std::string> own_files(const std::filesystem::path& folder) {
  if (!std::filesystem::exists(folder / "config.json")) return {};
  try {
    return vocabulary_names(read_json_file(folder / "config.json"));
  } catch (const Error&) {
    return {};  // damaged: no file in the folder is known to belong to the program
  }
}

void copy_text_files(const std::filesystem::path& model, const std::filesystem::path& folder) {
  std::vector<std::string> names = own_files(model);
  names.insert(names.end(), kPunktTables.begin(), kPunktTables.end());
  names.emplace_back(kTokenizerJson);
  for (const std::string& name : names) {
    if (std::filesystem::exists(model / name)) write_file_atomically(folder / name, read_file(model / name));
  }
}

ModelConfig read_encoder_config(const std::filesystem::path& folder) {
  const Json config = read_model_config(folder);
  ModelConfig result = model_config_from_json(
      config.at("model"), "config: " + (folder / "config.json").string() + ": model", UnknownKeys::refuse);
  result->validate();
  return result;
}

EtcConfig read_etc_config(const std::filesystem::path& folder) {
  const ModelConfig config = read_encoder_config(folder);
  const auto* const etc = dynamic_cast<const EtcConfig*>(&*config);
  if (etc == nullptr) {
    fail((folder / "config.json").string(),
         "expected an ETC encoder, got one of kind {} (etc convert writes any as --to safetensors, a dense one also as "
         "--to bert)",
         model_kind_of(config->to_json()));
  }
  return *etc;
}

void write_model(const std::filesystem::path& folder, const Json& config, const ParameterSet& parameters,
                 const MoreFiles& more, const std::function<void(std::int64_t)>& written) {
  TensorFileWriter file;
  for (const auto& parameter : parameters.all()) {
    if (!parameter->value) fail("checkpoint", "{} has no value to save", parameter->name);
    file.add(parameter->name, parameter->value);
  }
  file.set_metadata("format", "pt");  // expected by other readers of safetensors; numbers are plain row-major
  file.set_metadata("etc_version", program_version());
  for (const auto& [key, name] : {std::pair{"content_sha256", "data_sha256"}, {"vocab_sha256", "vocab_sha256"}}) {
    const std::string hash = text_in_data(config, key);
    if (!hash.empty()) file.set_metadata(name, hash);
  }
  file.write(folder / "model.safetensors", written);
  for (const auto& [name, bytes] : more) write_file_atomically(folder / name, bytes);
  write_file_atomically(folder / "config.json", json_text(config));
}

void save_model(const std::filesystem::path& folder, const Json& config, const ParameterSet& parameters,
                const MoreFiles& more) {
  AtomicFolder update(folder, OldFiles::keep, own_files(folder));
  write_model(update.path(), config, parameters, more);
  update.commit();
}

namespace {

// Whether the shapes differ only in the first size.
bool rows_differ_alone(const Parameter& parameter, const TensorEntry& entry) {
  const std::vector<std::int64_t>& own = parameter.shape;
  return own.size() == entry.shape.size() && !own.empty() &&
         std::equal(own.begin() + 1, own.end(), entry.shape.begin() + 1);
}

// The file's rows for a parameter with another number of rows; empty: none are chosen, or the choice is not valid.
std::vector<std::int64_t> chosen_rows(const RowChoice& rows, const Parameter& parameter, const TensorEntry& entry) {
  const std::vector<std::int64_t>& own = parameter.shape;
  if (!rows || !rows_differ_alone(parameter, entry)) return {};
  std::vector<std::int64_t> chosen = rows(parameter);
  const bool fit = std::ssize(chosen) == own[0] && std::all_of(chosen.begin(), chosen.end(), [&](std::int64_t row) {
                     return row >= 0 && row < entry.shape[0];
                   });
  return fit ? chosen : std::vector<std::int64_t>();
}

// Fills the parameter with these rows of the file's tensor.
void read_rows(const TensorFileReader& file, const std::string& name, const std::vector<std::int64_t>& rows,
               Parameter& parameter) {
  const Tensor stored = file.read_tensor(name, Purpose::scratch);
  const std::int64_t width = parameter.size() / parameter.shape[0];
  float* out = parameter.allocate().data();
  for (const std::int64_t row : rows) out = std::copy_n(stored.data() + row * width, width, out);
}

// The configuration in the file's folder; nullopt if it is of another kind, absent, or not of this program.
std::optional<DenseConfig> dense_config_beside(const TensorFileReader& file) {
  try {
    const ModelConfig config = read_encoder_config(file.path().parent_path());
    if (const auto* const dense = dynamic_cast<const DenseConfig*>(&*config)) return *dense;
  } catch (const Error&) {
    // Ignored: the configuration is only needed for a hint in another error's message.
  }
  return std::nullopt;
}

// A hint why a table of relative positions has another shape, from the configuration beside the file. resizing: the
// option resize_relative was given.
std::string position_hint(const TensorFileReader& file, const Parameter& parameter, const TensorEntry& entry,
                          bool resizing) {
  if (!is_position_table(parameter.name)) return "";
  const std::optional<DenseConfig> dense = dense_config_beside(file);
  if (!dense) return "";
  if (!rows_differ_alone(parameter, entry)) {
    const Json json = dense->to_json();
    return fmt::format(" (the checkpoint has relative_positions {}, relative_sharing {} and num_attention_heads {})",
                       json.at("relative_positions").get<std::string>(), json.at("relative_sharing").get<std::string>(),
                       dense->num_attention_heads);
  }
  if (dense->relative_positions == PositionConfig::Method::t5) {
    return fmt::format(" (of another relative_buckets: expected the checkpoint's {}, which cannot be cut or extended)",
                       dense->relative_buckets);
  }
  if (!resizing) return " (of another relative_clip: see resize_relative)";
  return fmt::format(" (not the rows of relative_clip {}, which the checkpoint's config.json has)", dense->clip());
}

using ParameterSources = std::vector<std::pair<Parameter*, std::string>>;  // parameter, name in the file

// The parameters that load_parameters() fills, and their names in the file. Fills parameters with chosen rows itself.
ParameterSources matched(const TensorFileReader& file, ParameterSet& parameters, Match match, const RowChoice& rows) {
  const std::string where = in_message(file.path());
  ParameterSources pairs;
  std::set<std::string, std::less<>> used;
  std::vector<std::string> unmatched;
  for (const auto& parameter : parameters.all()) {
    if (match == Match::encoder && !is_encoder_tensor(parameter->name)) continue;
    const std::string name = name_in_file(file, parameter->name);
    if (name.empty()) {
      unmatched.push_back(fmt::format("{} {} absent in file", parameter->name, shape_text(parameter->shape)));
      continue;
    }
    used.insert(name);
    const TensorEntry& entry = file.entry(name);
    if (entry.shape != parameter->shape) {
      if (const std::vector<std::int64_t> chosen = chosen_rows(rows, *parameter, entry); !chosen.empty()) {
        read_rows(file, name, chosen, *parameter);
        require_finite(where, *parameter);
        continue;
      }
      unmatched.push_back(fmt::format("{} expected {}, got {}{}", name, shape_text(parameter->shape),
                                      shape_text(entry.shape),
                                      position_hint(file, *parameter, entry, rows != nullptr)));
      continue;
    }
    pairs.emplace_back(parameter.get(), name);
  }
  for (const auto& [name, entry] : file.entries()) {
    if (used.count(name) != 0 || (match == Match::encoder && !is_encoder_tensor(name))) continue;
    unmatched.push_back(fmt::format("{} {} unused", name, shape_text(entry.shape)));
  }
  if (!unmatched.empty()) {
    fail(where, "{} tensor{} unmatched: {}", unmatched.size(), unmatched.size() == 1 ? "" : "s",
         fmt::join(unmatched, "; "));
  }
  return pairs;
}

void fill_from(const TensorFileReader& file, ParameterSources pairs) {
  fill_parameters(
      in_message(file.path()), std::move(pairs),
      [&](const std::string& name, float* out, const NumbersRead& seen) { file.read_floats(name, out, seen); });
}

}  // namespace

void load_parameters(const std::filesystem::path& file_path, ParameterSet& parameters, Match match,
                     const RowChoice& rows) {
  const TensorFileReader file(file_path);
  fill_from(file, matched(file, parameters, match, rows));
}

void map_parameters(const std::filesystem::path& file_path, ParameterSet& parameters, Match match) {
  const TensorFileReader file(file_path);
  ParameterSources mapped = matched(file, parameters, match, {});
  const auto copied = std::stable_partition(mapped.begin(), mapped.end(),
                                            [&](const auto& pair) { return file.is_mappable(pair.second); });
  fill_from(file, {copied, mapped.end()});
  mapped.erase(copied, mapped.end());
  parallel_for(static_cast<std::int64_t>(mapped.size()), [&](std::int64_t i) {
    const auto& [parameter, name] = mapped[static_cast<std::size_t>(i)];
    parameter->value = file.map_tensor(name, Purpose::weights);
    if (!parameter->value) parameter->value = file.read_tensor(name, Purpose::weights);
    ++parameter->version;
    require_finite(in_message(file.path()), *parameter);
  });
}

std::vector<std::string> load_pretraining_heads(const std::filesystem::path& file_path, ParameterSet& parameters) {
  const TensorFileReader file(file_path);
  ParameterSources pairs;
  std::vector<std::string> names;
  for (const auto& parameter : parameters.all()) {
    if (!is_pretraining_tensor(parameter->name) || !file.has(parameter->name)) continue;
    const TensorEntry& entry = file.entry(parameter->name);
    if (entry.shape != parameter->shape) {
      fail(in_message(file_path), "1 tensor unmatched: {} expected {}, got {}", parameter->name,
           shape_text(parameter->shape), shape_text(entry.shape));
    }
    pairs.emplace_back(parameter.get(), parameter->name);
    names.push_back(parameter->name);
  }
  fill_from(file, std::move(pairs));
  return names;
}

}  // namespace etc
