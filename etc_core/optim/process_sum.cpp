#include "etc_core/optim/process_sum.h"

#include <cstring>

#include "etc_core/base/device_memory.h"
#include "etc_core/ops/elementwise.h"

namespace etc {

namespace {

// What others must know of a root: where it stands, and which parameters have a gradient in it.
struct Head {
  TreeNode node;
  std::string has;  // by parameter, 0 or 1
};

std::string text_of(const std::vector<GradientAccumulator::Root>& roots) {
  std::string text;
  const auto append = [&text](const auto& value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const auto& root : roots) {
    append(root.node.level);
    append(root.node.index);
    for (const Tensor& gradient : root.value) text.push_back(gradient ? '\1' : '\0');
  }
  return text;
}

std::vector<Head> heads_of(const std::string& text, std::size_t parameters) {
  std::vector<Head> heads;
  std::size_t at = 0;
  const auto take = [&](auto& value) {
    std::memcpy(&value, text.data() + at, sizeof value);
    at += sizeof value;
  };
  while (at < text.size()) {
    Head& head = heads.emplace_back();
    take(head.node.level);
    take(head.node.index);
    head.has = text.substr(at, parameters);
    at += parameters;
  }
  return heads;
}

// left + right in left's memory; null: no gradient.
struct AddNumbers {
  Device device;
  std::int64_t count;

  float* operator()(float* left, float* right) const {
    if (right == nullptr) return left;
    if (left == nullptr) return right;
    ops::add(device, left, right, left, count);
    return left;
  }
};

class ProcessSum {
 public:
  ProcessSum(const Division& division, const ParameterSet& parameters, std::vector<GradientAccumulator::Root> roots)
      : division_(division), parameters_(parameters), roots_(std::move(roots)) {
    const std::size_t count = parameters.all().size();
    for (const std::string& text : division.processes.gather(text_of(roots_))) heads_.push_back(heads_of(text, count));
  }

  GradientSet run() {
    exchange();
    GradientSet total = make_total();
    for (std::size_t s = 0; s < division_.own().size(); ++s) {
      if (total[division_.own()[s].parameter]) add_stretch(s, total[division_.own()[s].parameter]);
    }
    return total;
  }

 private:
  bool is_own(std::size_t rank) const { return static_cast<int>(rank) == division_.processes.rank(); }

  // Parts of the roots go to their owners. `places_`: by rank, root and own stretch, where its numbers lie then.
  void exchange() {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    std::vector<std::vector<Tensor>> arrived(heads_.size());
    const GradientSetList on_host = roots_on_host();
    for (std::size_t rank = 0; rank < heads_.size(); ++rank) {
      if (is_own(rank)) continue;
      for (const GradientSet& root : on_host) {
        for (const NumberRange& stretch : division_.shards.of(static_cast<int>(rank))) {
          const Tensor& gradient = root[stretch.parameter];
          if (gradient) out.push_back({static_cast<int>(rank), gradient.data() + stretch.first, bytes(stretch.count)});
        }
      }
      for (const Head& head : heads_[rank]) {
        std::int64_t numbers = 0;
        for (const NumberRange& stretch : division_.own())
          numbers += head.has[stretch.parameter] != 0 ? stretch.count : 0;
        const Tensor& memory = arrived[rank].emplace_back(Tensor::empty({numbers}, Purpose::gradients));
        float* next = memory.data();
        for (const NumberRange& stretch : division_.own()) {
          if (head.has[stretch.parameter] == 0) continue;
          in.push_back({static_cast<int>(rank), next, bytes(stretch.count)});
          next += stretch.count;
        }
      }
    }
    division_.processes.exchange(out, in);
    for (std::size_t rank = 0; rank < heads_.size(); ++rank) {
      for (Tensor& memory : arrived[rank]) memory = memory.to(device());
      place(rank, std::move(arrived[rank]));
    }
  }

  void place(std::size_t rank, std::vector<Tensor> arrived) {
    for (std::size_t r = 0; r < heads_[rank].size(); ++r) {
      Place& place = places_.emplace_back();
      place.node = heads_[rank][r].node;
      float* next = is_own(rank) ? nullptr : arrived[r].data();
      for (const NumberRange& stretch : division_.own()) {
        const bool has = heads_[rank][r].has[stretch.parameter] != 0;
        if (!has) {
          place.numbers.push_back(nullptr);
        } else if (is_own(rank)) {
          place.numbers.push_back(roots_[r].value[stretch.parameter].data() + stretch.first);
        } else {
          place.numbers.push_back(next);
          next += stretch.count;
        }
      }
      if (!is_own(rank)) kept_.push_back(std::move(arrived[r]));
    }
  }

  using GradientSetList = std::vector<GradientSet>;
  GradientSetList roots_on_host() const {
    GradientSetList all;
    for (const auto& root : roots_) {
      GradientSet& set = all.emplace_back();
      for (const Tensor& gradient : root.value) set.push_back(gradient ? gradient.to(Device::cpu) : Tensor());
    }
    return all;
  }

  // A gradient for every parameter that has one anywhere: memory of an own root, or new.
  GradientSet make_total() const {
    GradientSet total(parameters_.all().size());
    for (std::size_t i = 0; i < total.size(); ++i) {
      bool anywhere = false;
      for (const auto& heads : heads_) {
        for (const Head& head : heads) anywhere = anywhere || head.has[i] != 0;
      }
      if (!anywhere) continue;
      for (const auto& root : roots_) {
        if (root.value[i]) total[i] = root.value[i];
      }
      if (!total[i]) total[i] = Tensor::empty(parameters_.all()[i]->shape, Purpose::gradients, device());
    }
    return total;
  }

  // Own stretch number s of all roots, into its place in the whole gradient.
  void add_stretch(std::size_t s, const Tensor& total) const {
    const NumberRange& stretch = division_.own()[s];
    TreeSum<float*, AddNumbers> tree({device(), stretch.count});
    for (const Place& place : places_) tree.push(place.node, place.numbers[s]);
    float* const sum = tree.finish().value_or(nullptr);
    float* const to = total.data() + stretch.first;
    if (sum != to) copy_bytes(device(), to, device(), sum, bytes(stretch.count));
  }

  Device device() const { return parameters_.all().front()->value.device(); }
  static std::int64_t bytes(std::int64_t numbers) { return numbers * static_cast<std::int64_t>(sizeof(float)); }

  // One root: its numbers of every own stretch; null: it has no gradient there.
  struct Place {
    TreeNode node;
    std::vector<float*> numbers;
  };

  const Division& division_;
  const ParameterSet& parameters_;
  std::vector<GradientAccumulator::Root> roots_;
  std::vector<std::vector<Head>> heads_;  // by rank
  std::vector<Place> places_;             // of all roots, in the order of their leaves
  std::vector<Tensor> kept_;              // memory of those that came
};

}  // namespace

GradientSet sum_own_share(const Division& division, const ParameterSet& parameters,
                          std::vector<GradientAccumulator::Root> roots) {
  return ProcessSum(division, parameters, std::move(roots)).run();
}

}  // namespace etc
