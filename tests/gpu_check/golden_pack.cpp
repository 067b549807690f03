#include "tests/gpu_check/golden_pack.h"

#include <cstring>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"

namespace etc::gpu_check {

namespace {

constexpr const char* kLabelNames[] = {"l2l", "l2g", "g2g", "g2l"};

std::array<Buffer<std::uint8_t>*, 4> label_buffers(sparse::AttentionLabels& labels) {
  return {&labels.l2l, &labels.l2g, &labels.g2g, &labels.g2l};
}

// The integer lists of an input.
struct NamedIds {
  const char* name;
  std::vector<std::int32_t> EncoderInput::*ids;
};
constexpr NamedIds kIds[] = {
    {"token_ids", &EncoderInput::token_ids},       {"global_token_ids", &EncoderInput::global_token_ids},
    {"segment_ids", &EncoderInput::segment_ids},   {"global_segment_ids", &EncoderInput::global_segment_ids},
    {"position_ids", &EncoderInput::position_ids}, {"global_position_ids", &EncoderInput::global_position_ids}};

// Eight bytes per word; the number of bytes is in the metadata.
std::vector<std::uint64_t> words_of(const Buffer<std::uint8_t>& bytes) {
  std::vector<std::uint64_t> words(static_cast<std::size_t>((bytes.size() + 7) / 8));
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), static_cast<std::size_t>(bytes.size()));
  return words;
}

}  // namespace

void GoldenPackWriter::add(const std::string& name, const PackedCase& packed, const ParameterSet& weights) {
  const EncoderInput& input = packed.input;
  const auto put = [&](const std::string& array, const Tensor& tensor) {
    if (tensor) file_.add(name + "/" + array, tensor);
  };
  for (const auto& parameter : weights.all()) put("weights/" + parameter->name, parameter->value);
  file_.add_i64(name + "/long_offsets", input.long_offsets);
  file_.add_i64(name + "/global_offsets", input.global_offsets);
  for (const NamedIds& list : kIds) {
    const std::vector<std::int32_t>& ids = input.*list.ids;
    if (!ids.empty()) file_.add_i64(name + "/" + list.name, {ids.begin(), ids.end()});
  }
  Json bytes = Json::object();
  const auto buffers = label_buffers(const_cast<EncoderInput&>(input).labels);
  for (std::size_t t = 0; t < 4; ++t) {
    bytes[kLabelNames[t]] = buffers[t]->size();
    if (!buffers[t]->empty()) file_.add_u64(name + "/labels/" + kLabelNames[t], words_of(*buffers[t]));
  }
  if (input.long_embedding_adder.defined()) put("long_adder", input.long_embedding_adder.value());
  if (input.global_embedding_adder.defined()) put("global_adder", input.global_embedding_adder.value());
  put("of_long", packed.of_long);
  put("of_global", packed.of_global);
  put("weights_long", packed.weights_long);
  put("weights_global", packed.weights_global);
  for (const auto& [parameter, gradient] : packed.gradients) put("grads/" + parameter, gradient);
  file_.set_metadata(name, json_line(Json{{"model", packed.config.to_json()},
                                          {"label_bytes", bytes},
                                          {"long_relative", input.labels.long_relative},
                                          {"global_relative", input.labels.global_relative},
                                          {"has_gradients", packed.has_gradients},
                                          {"loss", packed.loss}}));
}

GoldenPack::GoldenPack(const std::filesystem::path& file) : file_(file) {}

std::vector<std::string> GoldenPack::names() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : file_.metadata()) names.push_back(name);
  return names;
}

PackedCase GoldenPack::read(const std::string& name) const {
  const auto described = file_.metadata().find(name);
  if (described == file_.metadata().end()) fail(file_.path().string(), "there is no case {}", name);
  const Json json = parse_json(described->second, file_.path().string());
  PackedCase packed;
  packed.config = etc_config_from_json(json.at("model"), name, UnknownKeys::refuse);
  packed.has_gradients = json.at("has_gradients");
  packed.loss = json.at("loss");
  const auto get = [&](const std::string& array) -> Tensor {
    const std::string full = name + "/" + array;
    return file_.has(full) ? file_.read_tensor(full, Purpose::activations) : Tensor();
  };
  EncoderInput& input = packed.input;
  input.long_offsets = file_.read_i64(name + "/long_offsets");
  input.global_offsets = file_.read_i64(name + "/global_offsets");
  for (const NamedIds& list : kIds) {
    if (!file_.has(name + "/" + list.name)) continue;
    for (const std::int64_t id : file_.read_i64(name + "/" + list.name)) {
      (input.*list.ids).push_back(static_cast<std::int32_t>(id));
    }
  }
  const auto buffers = label_buffers(input.labels);
  for (std::size_t t = 0; t < 4; ++t) {
    const std::int64_t bytes = json.at("label_bytes").at(kLabelNames[t]);
    if (bytes == 0) continue;
    const std::vector<std::uint64_t> words = file_.read_u64(name + "/labels/" + kLabelNames[t]);
    *buffers[t] = Buffer<std::uint8_t>(bytes, Purpose::labels);
    std::memcpy(buffers[t]->data(), words.data(), static_cast<std::size_t>(bytes));
  }
  input.labels.long_relative = json.at("long_relative");
  input.labels.global_relative = json.at("global_relative");
  if (const Tensor adder = get("long_adder")) input.long_embedding_adder = Var(adder);
  if (const Tensor adder = get("global_adder")) input.global_embedding_adder = Var(adder);
  packed.of_long = get("of_long");
  packed.of_global = get("of_global");
  packed.weights_long = get("weights_long");
  packed.weights_global = get("weights_global");
  const std::string grads = name + "/grads/";
  for (const auto& [entry, place] : file_.entries()) {
    if (entry.starts_with(grads)) {
      packed.gradients[entry.substr(grads.size())] = file_.read_tensor(entry, Purpose::gradients);
    }
  }
  return packed;
}

void GoldenPack::fill(const std::string& name, ParameterSet& parameters) const {
  for (const auto& parameter : parameters.all()) {
    file_.read_floats(name + "/weights/" + parameter->name, parameter->allocate().data());
  }
}

}  // namespace etc::gpu_check
