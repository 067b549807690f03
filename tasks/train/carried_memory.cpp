#include "tasks/train/carried_memory.h"

#include <algorithm>
#include <charconv>

#include "etc_core/base/error.h"
#include "etc_core/comm/gather_values.h"
#include "etc_core/nn/dense_config.h"
#include "tasks/registry.h"
#include "tasks/train/model.h"

namespace etc {

namespace {

// Rows [first, first + rows) as a tensor of their own.
Tensor copied_rows(const Tensor& from, std::int64_t first, std::int64_t rows) {
  Tensor copy = Tensor::empty({rows, from.cols()}, Purpose::activations);
  std::copy_n(from.data() + first * from.cols(), copy.size(), copy.data());
  return copy;
}

}  // namespace

bool carries_memory(const EncoderConfig& model, const Json& task_section) {
  return CarriedMemory::rows_of(model) > 0 && task_kind(task_name(task_section)).texts_go_on;
}

CarriedMemory::CarriedMemory(const EncoderConfig& counted) {
  for (std::int64_t layer = 0; layer < counted.num_hidden_layers; ++layer) {
    counted_.push_back(Tensor::empty({CarriedMemory::rows_of(counted), counted.hidden_size}, Purpose::activations));
  }
}

void CarriedMemory::serve(TaskModel& model) {
  model.memory = carries_memory(*model.config, model.task_section) ? this : nullptr;
}

const CarriedMemory::Left* CarriedMemory::of(const Task& task, const data::LoadedExample& example) const {
  if (!counted_.empty()) return &counted_;
  if (task.begins_text(example)) return nullptr;
  const auto found = left_.find({example.epoch, example.index});
  return found == left_.end() ? nullptr : &found->second;
}

void CarriedMemory::give(const Task& task, Examples examples, EncoderInput& input) const {
  LayerMemory memory{{0}, {}};
  std::vector<const Left*> of_examples;
  for (const data::LoadedExample& example : examples) {
    const Left* const left = of(task, example);
    memory.offsets.push_back(memory.offsets.back() + (left == nullptr ? 0 : left->front().rows()));
    if (left != nullptr) of_examples.push_back(left);
  }
  if (of_examples.empty()) return;
  const Left& some = *of_examples.front();
  for (std::size_t layer = 0; layer < some.size(); ++layer) {
    Tensor all = Tensor::empty({memory.offsets.back(), some[layer].cols()}, Purpose::activations);
    float* to = all.data();
    for (const Left* const left : of_examples) {
      if (counted_.empty()) to = std::copy_n((*left)[layer].data(), (*left)[layer].size(), to);
    }
    memory.states.push_back(std::move(all));
  }
  input.memory = std::move(memory);
}

void CarriedMemory::take(Examples examples, const LayerMemory& after) {
  if (after.empty() || !counted_.empty()) return;
  for (const Tensor& states : after.states) {
    const Tensor on_host = states.to(Device::cpu);
    for (std::size_t b = 0; b < examples.size(); ++b) {
      Left& left = taken_[{examples[b].epoch, examples[b].index + 1}];
      if (&states == &after.states.front()) left.clear();  // from an earlier computation of the same step
      left.push_back(copied_rows(on_host, after.offsets[b], after.offsets[b + 1] - after.offsets[b]));
    }
  }
}

void CarriedMemory::commit() {
  left_ = std::exchange(taken_, {});
}

void CarriedMemory::fetch(Communicator& processes, const Task& task,
                          std::span<const std::vector<data::LoadedExample>> own) {
  if (processes.size() == 1) return;
  std::vector<Place> wanted;
  for (const Examples examples : own) {
    for (const data::LoadedExample& example : examples) {
      const Place place{example.epoch, example.index};
      if (!task.begins_text(example) && !left_.contains(place)) wanted.push_back(place);
    }
  }
  exchange(processes, wanted, false);
}

void CarriedMemory::collect(Communicator& processes) {
  if (processes.size() > 1) exchange(processes, {}, true);
}

// All processes exchange what they have and what they want; then all know who sends what to whom, in the same order.
void CarriedMemory::exchange(Communicator& processes, std::span<const Place> wanted, bool all_to_first) {
  struct Entry {
    std::int64_t epoch, example, rank, layers, rows, columns;  // layers 0: wanted
    Place place() const { return {epoch, example}; }
  };
  std::vector<Entry> own;
  for (const auto& [place, left] : left_) {
    own.push_back(
        {place.first, place.second, processes.rank(), std::ssize(left), left.front().rows(), left.front().cols()});
  }
  for (const Place& place : wanted) own.push_back({place.first, place.second, processes.rank(), 0, 0, 0});
  const std::vector<Entry> all = gather_values<Entry>(processes, own);

  std::map<Place, Entry> holders;  // the first one: copies in several processes are equal
  for (const Entry& entry : all) {
    if (entry.layers > 0) holders.emplace(entry.place(), entry);
  }
  std::vector<std::pair<std::int64_t, Entry>> sent;  // to, what
  for (const Entry& entry : all) {
    const auto holder = holders.find(entry.place());
    if (entry.layers == 0 && holder != holders.end()) sent.emplace_back(entry.rank, holder->second);
  }
  for (const auto& [place, holder] : holders) {
    if (all_to_first && holder.rank != 0) sent.emplace_back(0, holder);
  }

  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (const auto& [to, what] : sent) {
    if (what.rank != processes.rank() && to != processes.rank()) continue;
    Left& left = left_[what.place()];
    for (std::int64_t layer = 0; layer < what.layers; ++layer) {
      const std::int64_t bytes = what.rows * what.columns * static_cast<std::int64_t>(sizeof(float));
      if (what.rank == processes.rank()) {
        out.push_back({static_cast<int>(to), left[static_cast<std::size_t>(layer)].data(), bytes});
      } else {
        left.push_back(Tensor::empty({what.rows, what.columns}, Purpose::activations));
        in.push_back({static_cast<int>(what.rank), left.back().data(), bytes});
      }
    }
  }
  processes.exchange(out, in);
}

std::map<std::string, Tensor> CarriedMemory::tensors() const {
  std::map<std::string, Tensor> all;
  for (const auto& [place, left] : left_) {
    for (std::size_t layer = 0; layer < left.size(); ++layer) {
      all[fmt::format("{}{}/{}/{}", kPrefix, place.first, place.second, layer)] = left[layer];
    }
  }
  return all;
}

void CarriedMemory::set_tensors(const std::map<std::string, Tensor>& tensors, const std::string& where) {
  left_.clear();
  taken_.clear();
  std::map<Place, std::map<std::int64_t, Tensor>> layers;  // by number: names are sorted as text
  for (const auto& [name, tensor] : tensors) {
    std::int64_t numbers[3] = {};
    const char* at = name.data() + std::min(name.size(), std::string_view(kPrefix).size());
    const char* const end = name.data() + name.size();
    bool read = name.starts_with(kPrefix) && tensor.rank() == 2;
    for (std::int64_t& number : numbers) {
      const auto [behind, error] = std::from_chars(at, end, number);
      read = read && error == std::errc() && (behind == end || *behind == '/');
      at = behind + (behind != end ? 1 : 0);
    }
    if (!read || at != end) {
      fail(where, "{}: expected memory/<epoch>/<example>/<layer> with rows of states (the file is damaged)", name);
    }
    layers[{numbers[0], numbers[1]}][numbers[2]] = tensor;
  }
  for (auto& [place, of_place] : layers) {
    Left& left = left_[place];
    for (auto& [layer, tensor] : of_place) {
      const bool fits = layer == std::ssize(left) && (left.empty() || tensor.shape() == left.front().shape());
      if (!fits)
        fail(where, "memory/{}/{}: expected equal rows of all layers (the file is damaged)", place.first, place.second);
      left.push_back(std::move(tensor));
    }
    const Left& first = left_.begin()->second;
    if (left.size() != first.size() || left.front().cols() != first.front().cols()) {
      fail(where, "memory/{}/{}: expected layers as in the other streams (the file is damaged)", place.first,
           place.second);
    }
  }
}

std::int64_t CarriedMemory::rows_of(const EncoderConfig& model) {
  const auto* const dense = dynamic_cast<const DenseConfig*>(&model);
  return dense == nullptr ? 0 : dense->memory_length;
}

std::int64_t CarriedMemory::numbers_of(const EncoderConfig& model, std::int64_t streams) {
  return streams * CarriedMemory::rows_of(model) * model.num_hidden_layers * model.hidden_size;
}

}  // namespace etc
