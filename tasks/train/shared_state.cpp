#include "tasks/train/shared_state.h"

#include <cstring>

#include "etc_core/base/json.h"

namespace etc {

namespace {

std::int64_t bytes_of(const Tensor& tensor) {
  return tensor.size() * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

void share_parameters(Communicator& processes, ParameterSet& parameters) {
  if (processes.size() == 1) return;
  for (const auto& parameter : parameters.all()) {
    const Tensor& value = parameter->allocate();
    broadcast(processes, value.data(), bytes_of(value));
  }
}

std::map<std::string, Tensor> share_tensors(Communicator& processes, std::map<std::string, Tensor> tensors,
                                            Purpose purpose) {
  if (processes.size() == 1) return tensors;
  Json shapes = Json::object();
  for (const auto& [name, tensor] : tensors) shapes[name] = tensor.shape();
  shapes = parse_json(from_first(processes, json_line(shapes)), "shared tensors");
  for (const auto& [name, shape] : shapes.items()) {
    Tensor& tensor = tensors[name];
    if (!processes.first()) tensor = Tensor::empty(shape.get<std::vector<std::int64_t>>(), purpose);
    broadcast(processes, tensor.data(), bytes_of(tensor));
  }
  return tensors;
}

Metrics share_metrics(Communicator& processes, const Metrics& own) {
  if (processes.size() == 1) return own;
  std::string bytes;  // for every metric its value, its name, and a zero byte
  for (const auto& [name, value] : own) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    bytes += name + '\0';
  }
  bytes = from_first(processes, bytes);
  Metrics all;
  for (std::size_t at = 0; at < bytes.size();) {
    double value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    const std::string name = bytes.data() + at + sizeof value;
    all.emplace_back(name, value);
    at += sizeof value + name.size() + 1;
  }
  return all;
}

}  // namespace etc
