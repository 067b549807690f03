#include "tests/golden/golden_case.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace etc::test {

namespace {

std::vector<std::int32_t> ints_or_nothing(const GoldenFile& file, const std::string& path) {
  return file.has(path) ? file.read<std::int32_t>(path).values : std::vector<std::int32_t>();
}

// A mask or ids of the type [batch, queries, columns]; nothing if absent.
std::vector<std::int32_t> pairs_or_nothing(const GoldenFile& file, const std::string& path, const GoldenMasks& masks,
                                           const std::string& type) {
  if (!file.has(path)) return {};
  auto array = file.read<std::int32_t>(path);
  const std::vector<std::int64_t> shape = {masks.batch, masks.queries(type), masks.columns(type)};
  if (array.shape == shape) return std::move(array.values);
  fail(file.path().string(), "{}: expected shape [{}], got [{}]", path, fmt::join(shape, ", "),
       fmt::join(array.shape, ", "));
}

Tensor tensor_of(const GoldenArray<float>& array, std::vector<std::int64_t> shape) {
  return Tensor::from(array.values, std::move(shape), Purpose::activations);
}

// Part b of `parts` equal ones.
template <typename T>
std::vector<T> part(const std::vector<T>& all, std::int64_t b, std::int64_t parts) {
  const auto size = static_cast<std::int64_t>(all.size()) / std::max<std::int64_t>(1, parts);
  return {all.begin() + b * size, all.begin() + (b + 1) * size};
}

const std::int32_t* pointer(const std::vector<std::int32_t>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

std::vector<std::filesystem::path> model_files(const std::string& kind) {
  std::vector<std::filesystem::path> files = golden_files_of_kind(kind);
  if (files.empty()) skip("no golden files of kind " + kind);
  return files;
}

std::vector<std::string> data_sets_below(const GoldenFile& file, const std::string& group) {
  std::vector<std::string> names;
  if (!file.has(group)) return names;
  for (const std::string& name : file.data_sets(group)) names.push_back(name);
  for (const std::string& below : file.groups(group)) {
    for (const std::string& name : data_sets_below(file, group + "/" + below)) names.push_back(below + "/" + name);
  }
  return names;
}

GoldenMasks::GoldenMasks(const GoldenFile& file, const std::string& group, std::int64_t radius, std::int64_t b,
                         std::int64_t l, std::int64_t g)
    : batch(b), length(l), globals(g), window(2 * radius + 1) {
  const auto read = [&](const std::string& type, const char* name) {
    return pairs_or_nothing(file, group + "/" + type + name, *this, type);
  };
  l2l = read("l2l", "_att_mask");
  l2g = read("l2g", "_att_mask");
  g2g = read("g2g", "_att_mask");
  g2l = read("g2l", "_att_mask");
  l2l_ids = read("l2l", "_relative_att_ids");
  l2g_ids = read("l2g", "_relative_att_ids");
  g2g_ids = read("g2g", "_relative_att_ids");
  g2l_ids = read("g2l", "_relative_att_ids");
}

sparse::AttentionLabels GoldenMasks::labels(std::int64_t radius, std::int64_t relative_labels) const {
  sparse::MasksAndIds arrays;
  arrays.batch = batch;
  arrays.length = length;
  arrays.globals = globals;
  arrays.radius = radius;
  arrays.l2l_mask = pointer(l2l);
  arrays.l2g_mask = pointer(l2g);
  arrays.g2g_mask = pointer(g2g);
  arrays.g2l_mask = pointer(g2l);
  arrays.l2l_ids = pointer(l2l_ids);
  arrays.l2g_ids = pointer(l2g_ids);
  arrays.g2g_ids = pointer(g2g_ids);
  arrays.g2l_ids = pointer(g2l_ids);
  return sparse::labels_from_masks_and_ids(arrays, relative_labels);
}

GoldenMasks GoldenMasks::example(std::int64_t b) const {
  GoldenMasks one;
  one.batch = 1;
  one.length = length;
  one.globals = globals;
  one.window = window;
  one.l2l = part(l2l, b, batch);
  one.l2g = part(l2g, b, batch);
  one.g2g = part(g2g, b, batch);
  one.g2l = part(g2l, b, batch);
  one.l2l_ids = part(l2l_ids, b, batch);
  one.l2g_ids = part(l2g_ids, b, batch);
  one.g2g_ids = part(g2g_ids, b, batch);
  one.g2l_ids = part(g2l_ids, b, batch);
  return one;
}

const std::vector<std::int32_t>& GoldenMasks::mask(const std::string& type) const {
  if (type[0] == 'l') return type[2] == 'l' ? l2l : l2g;
  return type[2] == 'l' ? g2l : g2g;
}

const std::vector<std::int32_t>& GoldenMasks::ids(const std::string& type) const {
  return type == "l2l" ? l2l_ids : type == "l2g" ? l2g_ids : type == "g2g" ? g2g_ids : g2l_ids;
}

std::int64_t GoldenMasks::key(const std::string& type, std::int64_t query, std::int64_t column) const {
  const std::int64_t key = is_windowed(type) ? query + column - window / 2 : column;
  return key >= 0 && key < keys(type) ? key : -1;
}

bool GoldenMasks::allowed(const std::string& type, std::int64_t b, std::int64_t query, std::int64_t column) const {
  if (key(type, query, column) < 0) return false;
  const auto& values = mask(type);
  return values.empty() || values[static_cast<std::size_t>((b * queries(type) + query) * columns(type) + column)] != 0;
}

bool GoldenMasks::fully_masked(bool global, std::int64_t b, std::int64_t query) const {
  const std::string own = global ? "g2g" : "l2l", other = global ? "g2l" : "l2g";
  for (std::int64_t i = 0; i < (global ? globals : window); ++i) {
    if (allowed(own, b, query, i)) return false;
  }
  for (std::int64_t i = 0; i < (global ? length : globals); ++i) {
    if (allowed(other, b, query, i)) return false;
  }
  return true;
}

bool GoldenMasks::sees_only(const std::array<std::vector<bool>, 2>& rows, bool global, std::int64_t b,
                            std::int64_t query) const {
  const std::string types[2][2] = {{"l2l", "l2g"}, {"g2l", "g2g"}};
  for (std::size_t side = 0; side < 2; ++side) {  // of the keys
    const std::string& type = types[global][side];
    for (std::int64_t column = 0; column < columns(type); ++column) {
      if (!allowed(type, b, query, column)) continue;
      if (!rows[side][static_cast<std::size_t>(b * keys(type) + key(type, query, column))]) return false;
    }
  }
  return true;
}

std::array<std::vector<bool>, 2> GoldenMasks::defined_rows(std::int64_t layers) const {
  std::array<std::vector<bool>, 2> rows{std::vector<bool>(static_cast<std::size_t>(batch * length), true),
                                        std::vector<bool>(static_cast<std::size_t>(batch * globals), true)};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto before = rows;
    for (const bool global : {false, true}) {
      const std::int64_t count = global ? globals : length;
      for (std::int64_t i = 0; i < batch * count; ++i) {
        const std::int64_t b = i / count, query = i % count;
        if (!fully_masked(global, b, query) && sees_only(before, global, b, query)) continue;
        rows[global][static_cast<std::size_t>(i)] = false;
      }
    }
  }
  return rows;
}

GoldenCase::GoldenCase(const std::filesystem::path& path)
    : file(path),
      config(etc_config_from_json(parse_json(file.string_attribute("", "config_json"), path.filename().string()),
                                  path.filename().string(), UnknownKeys::refuse)),
      batch(file.read<std::int32_t>("inputs/token_ids").shape.at(0)),
      length(file.read<std::int32_t>("inputs/token_ids").shape.at(1)),
      globals(file.read<std::int32_t>("inputs/global_token_ids").shape.at(1)),
      masks(file, "inputs", config.local_radius, batch, length, globals) {}

EncoderInput GoldenCase::input(std::optional<std::int64_t> only) const {
  EncoderInput input;
  const std::int64_t count = only ? 1 : batch;
  for (std::int64_t b = 1; b <= count; ++b) {
    input.long_offsets.push_back(b * length);
    input.global_offsets.push_back(b * globals);
  }
  const auto ids = [&](const char* name) {
    const std::vector<std::int32_t> all = ints_or_nothing(file, std::string("inputs/") + name);
    return only ? part(all, *only, batch) : all;
  };
  input.token_ids = ids("token_ids");
  input.global_token_ids = ids("global_token_ids");
  input.segment_ids = ids("segment_ids");
  input.global_segment_ids = ids("global_segment_ids");
  input.position_ids = ids("position_ids");
  input.global_position_ids = ids("global_position_ids");
  const auto adder = [&](const char* name, std::int64_t rows) -> Var {
    if (!file.has(std::string("inputs/") + name)) return {};
    GoldenArray<float> all = file.read<float>(std::string("inputs/") + name);
    if (only) all.values = part(all.values, *only, batch);
    return Var(tensor_of(all, {count * rows, config.hidden_size}));
  };
  input.long_embedding_adder = adder("long_embedding_adder", length);
  input.global_embedding_adder = adder("global_embedding_adder", globals);
  input.labels = (only ? masks.example(*only) : masks).labels(config.local_radius, config.relative_labels());
  if (only) input.sample_ordinals = {*only};
  return input;
}

std::function<bool(std::int64_t)> counted_rows(const GoldenCase& golden, const std::string& name) {
  std::int64_t layers = golden.config.num_hidden_layers;
  if (name.starts_with("embedding_")) layers = 0;
  if (name.starts_with("layer_")) layers = std::stoll(name.substr(6)) + 1;
  const bool global = name.ends_with("global");
  return [rows = golden.masks.defined_rows(layers)[global], hidden = golden.config.hidden_size](
             std::int64_t i) -> bool { return rows.at(static_cast<std::size_t>(i / hidden)); };
}

std::filesystem::path golden_file_of(const std::filesystem::path& checkpoint) {
  return checkpoint.parent_path().parent_path() / (checkpoint.filename().string() + ".h5");
}

void require_golden_config(const GoldenFile& file, const std::filesystem::path& config) {
  const Json own = read_json_file(config);
  Json golden = parse_json(file.string_attribute("", "config_json"), file.path().string());
  for (const char* name : {"use_residual_attention", "use_running_mean"}) {
    if (!own.contains(name)) golden.erase(name);
  }
  if (own != golden) fail(config.string(), "expected the configuration of the golden file, {}", json_line(golden));
}

std::vector<std::filesystem::path> golden_checkpoints(const std::string& config_name) {
  std::vector<std::filesystem::path> found;
  const auto folder = golden_folder();
  if (!folder || !std::filesystem::exists(*folder / "ckpt")) return found;
  for (const auto& entry : std::filesystem::directory_iterator(*folder / "ckpt")) {
    const auto has = [&](const std::string& name) { return std::filesystem::exists(entry.path() / name); };
    if (!has("etc_config.json") && !has("bert_config.json")) {
      fail(entry.path().string(), "expected etc_config.json or bert_config.json");
    }
    if (!std::filesystem::exists(golden_file_of(entry.path()))) {
      fail(entry.path().string(), "no golden file of this name");
    }
    if (has(config_name)) found.push_back(entry.path());
  }
  return found;
}

void load_golden_weights(const GoldenFile& file, const std::string& group, ParameterSet& parameters) {
  std::set<std::string> names;
  for (const std::string& name : data_sets_below(file, group)) names.insert(name);
  for (const auto& parameter : parameters.all()) {
    if (names.erase(parameter->name) == 0) fail(file.path().string(), "{}: {} is absent", group, parameter->name);
    const GoldenArray<float> values = file.read<float>(group + "/" + parameter->name);
    if (values.shape != parameter->shape) fail(file.path().string(), "{}: other shape", parameter->name);
    std::copy(values.values.begin(), values.values.end(), parameter->allocate().data());
  }
  if (!names.empty()) fail(file.path().string(), "{}: {} is not a parameter of the model", group, *names.begin());
}

GoldenArray<double> best_reference(const GoldenFile& file, const std::string& prefix, const std::string& group,
                                   const std::string& name) {
  const std::string single = prefix + group + "/" + name, precise = prefix + group + "64/" + name;
  GoldenArray<double> best = file.read<double>(file.has(precise) ? precise : single);
  if (!file.has(precise) || !file.has(single)) return best;
  // The float32 numbers are not read otherwise. They must equal the float64 ones up to rounding, which is largest in rows
  // without visible keys.
  const std::vector<double> rounded = file.read<double>(single).values;
  double largest = 1;
  Worst worst;
  for (const double value : best.values) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < rounded.size(); ++i) worst.see(std::abs(rounded[i] - best.values.at(i)), single);
  if (rounded.size() != best.values.size() || worst.value > 1e-4 * largest) {
    fail("golden file", "{}: expected the numbers of {} within {:.1e}, got one {:.1e} off", single, precise,
         1e-4 * largest, worst.value);
  }
  return best;
}

void Worst::see(double difference, const std::string& place) {
  if (difference <= value) return;
  value = std::isnan(difference) ? HUGE_VAL : difference;  // nan would be replaced by the next difference
  where = place;
}

void Worst::compare(const std::string& name, const std::vector<double>& expected, const std::vector<float>& actual,
                    double scale, const std::function<bool(std::int64_t)>& counts) {
  if (expected.size() != actual.size()) {
    fail(name, "{} numbers in the golden file, the model has {}", expected.size(), actual.size());
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (counts && !counts(static_cast<std::int64_t>(i))) continue;
    const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]) / scale;
    if (!(difference <= value)) {
      see(difference, fmt::format("{}[{}]: expected {}, got {}", name, i, expected[i], actual[i]));
    }
  }
}

void compare_output(Worst& worst, const GoldenFile& file, const std::string& name, const std::vector<float>& actual,
                    const std::function<bool(std::int64_t)>& counts) {
  for (const std::string group : {"outputs/", "outputs64/", "outputs_sparse/", "outputs_sparse64/"}) {
    if (group != "outputs/" && !file.has(group + name)) continue;
    worst.compare(group + name, file.read<double>(group + name).values, actual, 1, counts);
  }
}

bool is_shared_key_bias(const std::string& name, bool share_kv, bool share_qkv) {
  return (share_kv || share_qkv) && name.find("_key_projection/linear/bias") != std::string::npos;
}

namespace {

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double x : values) largest = std::max(largest, std::abs(x));
  return largest;
}

// "…/fused_att_layer_2/…/l2l_key_projection/linear/bias" -> "l2l_key_projection/linear/bias"
std::string last_parts(const std::string& name) {
  std::size_t at = name.size();
  for (int parts = 0; parts < 3 && at != std::string::npos && at > 0; ++parts) at = name.rfind('/', at - 1);
  return at == std::string::npos || at == 0 ? name : name.substr(at + 1);
}

// The kernel whose gradient tells the size of the terms of this gradient, a sum that may cancel: see GradientDifference.
std::string kernel_of_terms(const std::string& name, bool zero) {
  const std::string layer = name.substr(0, name.rfind('/'));  // "…/self/key"
  for (const std::string projection : {"/query", "/key"}) {
    if (zero && layer.ends_with(projection)) {
      return layer.substr(0, layer.size() - projection.size()) + "/value/kernel";
    }
  }
  return name.ends_with("/bias") ? layer + "/kernel" : "";
}

double rounding_floor(const std::string& name, const std::map<std::string, std::vector<double>>& expected) {
  const auto kernel = expected.find(kernel_of_terms(name, largest_of(expected.at(name)) == 0));
  return kernel == expected.end() ? 0 : GradientDifference::kRoundings * 0x1p-24 * largest_of(kernel->second);
}

// The loss Σ W·y sums thousands of terms that cancel. Rounding errors of y add up as the root of the sum of squares of the
// terms; those of single outputs are far below their tolerance, most of them below a tenth.
double size_of_loss(const GoldenFile& file, double loss) {
  double squares = 0;
  for (const std::string& name : data_sets_below(file, "loss")) {
    if (!name.starts_with("W_")) continue;
    const std::vector<double> weights = file.read<double>("loss/" + name).values;
    const std::vector<double> outputs = file.read<double>("outputs/" + name.substr(2)).values;
    if (weights.size() != outputs.size()) fail("loss/" + name, "expected the size of its output");
    for (std::size_t i = 0; i < weights.size(); ++i) squares += weights[i] * weights[i] * outputs[i] * outputs[i];
  }
  return std::max({1.0, std::abs(loss), 0.25 * std::sqrt(squares)});
}

}  // namespace

void GradientDifference::compare(const std::map<std::string, std::vector<double>>& expected, const NamedNumbers& actual,
                                 const std::string& place) {
  for (const auto& [name, values] : actual) {
    if (expected.count(name) == 0) fail(place + name, "gradient: computed, but not in the golden file");
  }
  double largest = 1e-300;  // tensors that are all zero must equal themselves
  for (const auto& [name, values] : expected) largest = std::max(largest, largest_of(values));
  for (const auto& [name, values] : expected) {
    if (actual.count(name) == 0) fail(place + name, "gradient: in the golden file, but not computed");
    const double own = std::max(largest_of(values), 1e-300);
    const double scale = std::max(own + rounding_floor(name, expected) / kTolerance, kSmall * largest);
    Worst of_tensor;
    of_tensor.compare(place + name, values, actual.at(name), scale);
    worst.see(of_tensor.value, of_tensor.where);
    OfTensor& all = tensors[last_parts(name)];
    all.own = std::max(all.own, of_tensor.value * scale / own);
    all.tolerated = std::max(all.tolerated, of_tensor.value / kTolerance);
  }
}

void GradientDifference::add(const GradientDifference& other) {
  worst.see(other.worst.value, other.worst.where);
  for (const auto& [name, of] : other.tensors) {
    tensors[name].own = std::max(tensors[name].own, of.own);
    tensors[name].tolerated = std::max(tensors[name].tolerated, of.tolerated);
  }
}

void GradientDifference::print() const {
  std::printf("\n  %-64s %10s %10s\n", "gradients by tensor: worst difference", "of its own", "tolerated");
  for (const auto& [name, of] : tensors) std::printf("  %-64s %10.1e %10.2f\n", name.c_str(), of.own, of.tolerated);
  std::fflush(stdout);
}

void ModelDifference::compare_loss(const GoldenFile& file, double actual) {
  const double precise = file.read<double>("loss/value64").values.at(0);
  const double single = file.read<double>("loss/value").values.at(0);
  const double unit = size_of_loss(file, precise);
  loss.see(std::abs(actual - precise) / unit, "loss/value64");
  loss.see(std::abs(actual - single) / unit, "loss/value");
}

void ModelDifference::compare_gradients(const GoldenFile& file, const NamedNumbers& actual) {
  for (const std::string group : {"grads", "grads64"}) {
    if (group == "grads64" && !file.has(group)) continue;
    std::map<std::string, std::vector<double>> expected;
    for (const std::string& name : data_sets_below(file, group)) {
      expected[name] = file.read<double>(group + "/" + name).values;
    }
    gradients.compare(expected, actual, group + "/");
  }
}

std::vector<std::optional<double>> ModelDifference::figures(bool has_scores, bool has_gradients) const {
  const auto figure = [](bool there, double value) { return there ? std::optional(value) : std::nullopt; };
  return {outputs.value, figure(has_scores, scores.value), figure(has_gradients, loss.value),
          figure(has_gradients, gradients.worst.value)};
}

bool ModelDifference::tolerated() const {
  return outputs.value <= kOutputTolerance && scores.value <= kOutputTolerance && loss.value <= kOutputTolerance &&
         gradients.worst.value <= GradientDifference::kTolerance;
}

void ModelDifference::check() const {
  CAPTURE(outputs.where, outputs.value, scores.where, scores.value, loss.where, loss.value, gradients.worst.where,
          gradients.worst.value);
  CHECK(tolerated());
}

double falsification(const std::string& data_set, double value) {
  return 1e-3 * std::max(std::abs(value), data_set.starts_with("loss/") ? 1 : 0.1);
}

GoldenReport::GoldenReport(std::string title, std::vector<std::string> columns) : title_(std::move(title)) {
  std::string line = fmt::format("{:<36}", "file");
  for (const std::string& column : columns) line += fmt::format(" {:>10}", column);
  lines_.push_back(line);
}

GoldenReport::~GoldenReport() {
  std::printf("\n%s\n", title_.c_str());
  for (const std::string& line : lines_) std::printf("  %s\n", line.c_str());
  std::fflush(stdout);
}

void GoldenReport::row(const std::string& file, const std::vector<std::optional<double>>& figures) {
  std::string line = fmt::format("{:<36}", file);
  for (const auto& figure : figures) line += figure ? fmt::format(" {:>10.1e}", *figure) : fmt::format(" {:>10}", "-");
  lines_.push_back(line);
}

}  // namespace etc::test
