#include "tasks/train/run_state.h"

#include <limits>

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/cpu_features.h"
#include "etc_core/base/error.h"
#include "etc_core/base/version.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/ops/library_versions.h"
#include "tasks/train/plan.h"
#include "tasks/train/shared_state.h"

namespace etc {

namespace fs = std::filesystem;

namespace {

constexpr const char* kStateFile = "state.safetensors";
constexpr const char* kProgressKey = "progress";
constexpr const char* kIdentityKey = "identity";
constexpr const char* kDeviceKey = "device";  // of section `machine`
constexpr const char* kHost = "cpu";

// The progress as stored: members that are not plain numbers are JSON.
struct StoredProgress : RunProgress {
  std::int64_t samples = 0;
  Json results;  // of `best`: (name, value) in their order, NaN as null
};

// Field::mark of a key that older programs did not write.
constexpr int kMayLack = 1;

const FieldList<StoredProgress>& progress_fields() {
  using P = StoredProgress;
  static const FieldList<P> kFields{
      {"step", &P::step, "updates made"},
      {"samples", &P::samples, "position of the loader behind the last batch used"},
      {"evaluated_step", &P::evaluated_step, "of the last evaluation"},
      {"best_step", &P::best_step, "of the best evaluation; 0: none yet"},
      {"best", &P::results, "its results"},
      {"best_saved", &P::best_saved, "whether they have a checkpoint of their own", {}, kMayLack},
      {"stale_evaluations", &P::stale_evaluations, "evaluations since the best"},
      {"last_loss", &P::last_loss, "of the last step"},
      {"loss_sum", &P::loss_sum, "of the steps since the last line of the metrics"},
      {"loss_steps", &P::loss_steps, "as many"},
  };
  return kFields;
}

Json to_json(const RunProgress& progress) {
  StoredProgress stored{progress, progress.loader.samples, progress.best};
  return progress_fields().to_json(stored);
}

RunProgress progress_from_json(const Json& json, const std::string& where) {
  for (const Field& field : progress_fields()) {
    if (field.mark != kMayLack && !json.contains(field.name)) fail(where, "{} is missing", field.name);
  }
  StoredProgress stored = progress_fields().read_unchecked(json, where);
  stored.loader.samples = stored.samples;
  const auto refuse = [&](const Json& found) {
    fail(where, "best: expected pairs of a name and a number or null, got {}", json_line(found));
  };
  if (!stored.results.is_array()) refuse(stored.results);
  for (const Json& entry : stored.results) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string()) refuse(entry);
    const Json& value = entry.at(1);
    if (!value.is_number() && !value.is_null()) refuse(entry);
    stored.best.emplace_back(entry.at(0).get<std::string>(),
                             value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
  }
  return stored;
}

std::string metadata_of(const TensorFileReader& reader, const char* key) {
  const auto found = reader.metadata().find(key);
  if (found == reader.metadata().end())
    fail(reader.path().string(), "metadata {} is missing (the file is damaged)", key);
  return found->second;
}

RunProgress stored_progress(const TensorFileReader& state) {
  const std::string where = state.path().string();
  const Json json = parse_json(metadata_of(state, kProgressKey), where);
  try {
    return progress_from_json(json, "stored counters");
  } catch (const std::exception& error) {
    fail(where, "metadata {}: {} (the file is damaged)", kProgressKey, error.what());
  }
}

// Values of entries that older runs did not record. Keys of section `training` were introduced with a default that
// changes nothing. Null if the value cannot be known: the versions of program and libraries that an older run was
// started with, and whether AMX was used. Resuming such a run is refused, because it was started with another build
// than this one, which records the versions, and a resumed run guarantees its bits; to continue without this guarantee,
// start a new run from the older one's weights.
Json before_it_was_written(const std::string& section, const std::string& key) {
  if (section == "machine" && key == kDeviceKey) return kHost;
  const Field* field = section == "training" ? training_fields().find(key) : nullptr;
  return field == nullptr ? Json() : field->default_value();
}

bool may_grow(const std::string& section, const std::string& key) {
  const Field* field = section == "training" ? training_fields().find(key) : nullptr;
  return field != nullptr && field->mark == kMayGrow;
}

// Runs older than absolute paths hold the path from the command line, relative to the working directory of that time.
// It is not read any more once there is a checkpoint to resume from.
Json settled(const std::string& key, const Json& value) {
  return key == "init_from" && value.is_string() ? Json(absolute_path(value.get<std::string>())) : value;
}

}  // namespace

Json run_identity(const RunConfig& config, const RunData& files, const OpenedDevice& device) {
  Json identity = with_absolute_paths(config).to_json();
  for (const Field& field : training_fields()) {
    if (field.mark == kMayChange) identity["training"].erase(field.name);
  }
  identity["data"] = {
      {"content of the evaluation data", files.eval ? Json(files.eval->content_hashes()) : Json::array()},
      {"content of the training data", files.train->content_hashes()},
      {"vocabulary", files.train->info().vocab_sha256}};
  identity["build"] = {{"library of products", ops::product_library()},
                       {"library of vectors", ops::vector_library()},
                       {"program", program_version()}};
  identity["machine"]["instruction set"] = instruction_set();
  identity["machine"][kDeviceKey] = device.device == Device::cpu ? kHost : device.description;
  if (device.device == Device::cpu && training_compute(config.training) == ComputeType::bf16) {
    // Names the order of sums, too: earlier programs multiplied the gradients of one group of queries at a time, all their
    // query blocks had 512 queries, and they added sums over 512 tokens to weight gradients.
    const std::string unit = cpu_has_amx(ComputeType::bf16) ? "AMX" : "AVX-512";
    identity["machine"]["bf16 products"] =
        unit + ", two groups of queries at once, longer query blocks, sums over all tokens";
  }
  return identity;
}

void require_same_run(const Json& stored, const Json& now, const std::string& where) {
  for (const auto& [section, entries] : now.items()) {
    for (const auto& [key, value] : entries.items()) {
      const Json before =
          settled(key, stored.value(section, Json::object()).value(key, before_it_was_written(section, key)));
      if (before == value || may_grow(section, key)) continue;
      const bool is_key = section == "model" || section == "task" || section == "training";
      fail(where,
           "cannot be resumed: {}{}: {}, now it is {} (another --output starts a run of its own, with --init-from {} "
           "from these weights)",
           is_key ? section + "." : "", key,
           before.is_null() && !is_key ? "an older program started the run and did not record it"
                                       : "the run was started with " + json_line(before),
           json_line(value), where);
    }
  }
}

void save_run(const fs::path& folder, const RunState& state) {
  std::vector<std::string> own = own_files(folder);
  own.push_back(BestCheckpoint::kKeptFile);
  AtomicFolder fresh(folder, OldFiles::keep, own);
  write_model(fresh.path(), state.config, state.parameters, state.files);
  state.best.write_kept(fresh.path(), state.progress.step);
  TensorFileWriter file;
  for (const auto& [name, tensor] : state.tensors) file.add(name, tensor);
  file.set_metadata(kProgressKey, json_line(to_json(state.progress)));
  file.set_metadata(kIdentityKey, json_line(state.identity));
  file.write(fresh.path() / kStateFile);
  fresh.commit();
}

RunProgress load_run(const fs::path& folder, const RunParts& parts, const Json& identity, Communicator& processes) {
  ParameterSet& parameters = parts.parameters;
  std::map<std::string, Tensor> moments, memory;
  std::string progress;
  if (processes.first()) {
    const TensorFileReader state(folder / kStateFile);
    require_same_run(read_run_identity(folder), identity, folder.string());
    load_parameters(folder / "model.safetensors", parameters);
    for (const auto& [name, entry] : state.entries()) {
      const bool carried = name.starts_with(CarriedMemory::kPrefix);
      (carried ? memory : moments)[name] = state.read_tensor(name, carried ? Purpose::activations : Purpose::moments);
    }
    parts.memory.set_tensors(memory, state.path().string());
    progress = json_line(to_json(stored_progress(state)));
  }
  share_parameters(processes, parameters);
  parts.optimizer.set_moments(share_tensors(processes, std::move(moments), Purpose::moments), param_refs(parameters));
  const RunProgress read =
      progress_from_json(parse_json(from_first(processes, progress), "stored counters"), "stored counters");
  parts.optimizer.set_updates(read.step);  // the run makes one in each step
  return read;
}

Json read_run_identity(const fs::path& folder) {
  const TensorFileReader state(folder / kStateFile);
  return parse_json(metadata_of(state, kIdentityKey), state.path().string());
}

RunProgress read_run_progress(const fs::path& folder) {
  return stored_progress(TensorFileReader(folder / kStateFile));
}

}  // namespace etc
