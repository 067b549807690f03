#include "etc_core/optim/process_sum.h"

#include <algorithm>
#include <string>
#include <utility>

#include "etc_core/base/device_memory.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/elementwise.h"

namespace etc {

namespace {

// The roots that remain of neighbouring leaves when all complete nodes are added up.
std::vector<TreeNode> roots_over(const LeafRange& leaves) {
  const auto nothing = [](char, char) { return '\0'; };
  TreeSum<char, decltype(nothing)> tree(nothing);
  for (std::int64_t leaf = leaves.first; leaf < leaves.end; ++leaf) tree.push({0, leaf}, '\0');
  std::vector<TreeNode> nodes;
  for (const auto& root : tree.roots()) nodes.push_back(root.node);
  return nodes;
}

std::int64_t last_leaf(const TreeNode& node) {
  return ((node.index + 1) << node.level) - 1;
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

}  // namespace

// One batch with several processes. The stages of a bucket of parameters:
//   an own root's gradients are final ─▶ sent to their owners ─▶ own parts of all roots have arrived, and are added
//                                                             ─▶ the sum is sent to all
class ProcessSum::Batch {
 public:
  Batch(const Division& division, const ParameterSet& parameters, Result result, std::span<const LeafRange> of_rank)
      : division_(division), parameters_(parameters), result_(result), buckets_(division.shards.buckets()) {
    const std::size_t count = parameters.all().size();
    for (const LeafRange& leaves : of_rank) roots_of_.push_back(roots_over(leaves));
    own_.assign(own_nodes().size(), GradientSet(count));
    has_.assign(count, '0');
    total_.resize(count);
    states_.resize(buckets_.size());
    for (std::size_t bucket = buckets_.size(); own_.empty() && bucket-- > 0;) receive(bucket);
  }

  // Called when the accumulator has a parameter's sum over leaves that end with this one; it may be an own root.
  void complete(std::int64_t leaf, std::size_t parameter, const GradientAccumulator& accumulator) {
    std::size_t root = 0;
    while (root < own_.size() && last_leaf(own_nodes()[root]) != leaf) ++root;
    if (root == own_.size()) return;
    own_[root][parameter] = accumulator.roots(parameter).back().value;
    if (own_[root][parameter]) has_[parameter] = '1';
    const auto after = std::upper_bound(buckets_.begin(), buckets_.end(), parameter,
                                        [](std::size_t i, const Bucket& bucket) { return i < bucket.end; });
    const auto bucket = static_cast<std::size_t>(after - buckets_.begin());
    if (++states_[bucket].complete == buckets_[bucket].end - buckets_[bucket].first) {
      states_[bucket].complete = 0;
      if (division_.rounds == nullptr) send(bucket, own_[root]);
      if (root + 1 == own_.size()) receive(bucket);
    }
    while (next_ < order_.size() && arrived(order_[next_])) add(order_[next_++]);
  }

  GradientSet finish() {
    std::string anywhere = has_;
    for (const std::string& each : division_.processes.gather(has_)) {
      for (std::size_t i = 0; i < each.size(); ++i) anywhere[i] = std::max(anywhere[i], each[i]);
    }
    for (; next_ < order_.size(); ++next_) {
      for (const auto& transfer : states_[order_[next_]].roots) division_.wait(*transfer);
      add(order_[next_]);
    }
    for (const BucketState& state : states_) {
      if (state.spread) division_.wait(*state.spread);
    }
    for (std::size_t i = 0; i < total_.size(); ++i) {
      if (anywhere[i] == '1') {
        memory_of_total(i);
      } else {
        total_[i] = Tensor();
      }
      if (!total_[i] || device() == Device::cpu || division_.rounds || result_ == Result::own_share) continue;
      copy_bytes(device(), total_[i].data(), Device::cpu, sent_[i].data(), bytes_of(total_[i].size()));
    }
    return std::move(total_);
  }

 private:
  struct BucketState {
    std::size_t complete = 0;                      // finished parameters of the current own root
    std::vector<std::shared_ptr<Transfer>> roots;  // the last one receives the roots of others
    std::vector<Tensor> memory;                    // for the roots of others, one after the other
    std::shared_ptr<Transfer> spread;
  };

  const std::vector<TreeNode>& own_nodes() const {
    return roots_of_[static_cast<std::size_t>(division_.processes.rank())];
  }
  Device device() const { return parameters_.all().front()->value.device(); }
  Tensor new_gradient(std::size_t i) const {
    return Tensor::empty(parameters_.all()[i]->shape, Purpose::gradients, device());
  }
  std::span<const NumberRange> own_ranges(std::size_t bucket) const {
    return division_.shards.of(division_.processes.rank(), buckets_[bucket]);
  }

  static int tag(std::size_t bucket) { return 1 + 2 * static_cast<int>(bucket); }  // start_spread uses the even tags

  // Sends all owners their parts of an own root.
  void send(std::size_t bucket, const GradientSet& root) {
    const auto on_host = std::make_shared<GradientSet>(root.size());
    for (std::size_t i = buckets_[bucket].first; i < buckets_[bucket].end; ++i) {
      if (root[i]) (*on_host)[i] = root[i].to(Device::cpu);
    }
    std::vector<Outgoing> out;
    put_parts(bucket, *on_host, out);
    states_[bucket].roots.push_back(division_.start(tag(bucket), out, {}, on_host));
  }

  void put_parts(std::size_t bucket, const GradientSet& root, std::vector<Outgoing>& out) const {
    for (int rank = 0; rank < division_.processes.size(); ++rank) {
      if (rank == division_.processes.rank()) continue;
      for (const NumberRange& range : division_.shards.of(rank, buckets_[bucket])) {
        const Tensor& gradient = root[range.parameter];
        out.push_back({rank, gradient ? gradient.data() + range.first : nullptr, bytes_of(range.count)});
      }
    }
  }

  // Starts receiving the owned part of all other roots. With rounds between devices, this also sends the other owners
  // their parts of the own roots, which are complete by now.
  void receive(std::size_t bucket) {
    std::int64_t numbers = 0;
    for (const NumberRange& range : own_ranges(bucket)) numbers += range.count;
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    std::vector<Tensor>& memory = states_[bucket].memory;
    const Device where = division_.rounds ? device() : Device::cpu;
    for_others([&](int rank) {
      float* next = memory.emplace_back(Tensor::empty({numbers}, Purpose::gradients, where)).data();
      for (const NumberRange& range : own_ranges(bucket)) {
        in.push_back({rank, next, bytes_of(range.count)});
        next += range.count;
      }
    });
    const auto held = std::make_shared<std::vector<Tensor>>(memory);
    for (std::size_t root = 0; division_.rounds != nullptr && root < own_.size(); ++root) {
      put_parts(bucket, own_[root], out);
      for (std::size_t i = buckets_[bucket].first; i < buckets_[bucket].end; ++i) held->push_back(own_[root][i]);
    }
    states_[bucket].roots.push_back(division_.start(tag(bucket), out, in, held));
    order_.push_back(bucket);
  }

  // Calls each(rank) for every root of the others, in the order of their leaves.
  template <typename Each>
  void for_others(const Each& each) const {
    for (int rank = 0; rank < division_.processes.size(); ++rank) {
      if (rank == division_.processes.rank()) continue;
      for (std::size_t r = 0; r < roots_of_[static_cast<std::size_t>(rank)].size(); ++r) each(rank);
    }
  }

  bool arrived(std::size_t bucket) const {
    return std::all_of(states_[bucket].roots.begin(), states_[bucket].roots.end(),
                       [this](const auto& transfer) { return division_.done(*transfer); });
  }

  // Adds the owned numbers of all roots in the tree's order, then sends the sums to all processes.
  void add(std::size_t bucket) {
    BucketState& state = states_[bucket];
    for (Tensor& memory : state.memory) memory = memory.to(device());
    GradientSet own(total_.size());  // sums to be sent to the others
    std::int64_t before = 0;
    for (std::size_t s = 0; s < own_ranges(bucket).size(); ++s) {
      const NumberRange& range = own_ranges(bucket)[s];
      const float* const sum = sum_of(bucket, s, before);
      before += range.count;
      if (sum == nullptr) continue;
      const Tensor& whole = memory_of_total(range.parameter);
      float* const to = whole.data() + range.first;
      if (sum != to) copy_bytes(device(), to, device(), sum, bytes_of(range.count));
      own[range.parameter] = whole;
    }
    state.memory.clear();
    state.roots.clear();
    if (result_ == Result::own_share) return;
    if (sent_.empty()) sent_.resize(total_.size());
    for (std::size_t i = buckets_[bucket].first; i < buckets_[bucket].end; ++i) {
      sent_[i] = division_.rounds ? memory_of_total(i) : memory_of_total(i).to(Device::cpu);
      if (own[i]) own[i] = sent_[i];
    }
    state.spread = start_spread(division_, bucket, own, sent_);
  }

  // Memory for the total: that of an own root, or new.
  const Tensor& memory_of_total(std::size_t parameter) {
    Tensor& total = total_[parameter];
    for (const GradientSet& root : own_) {
      if (!total) total = root[parameter];
    }
    if (!total) total = new_gradient(parameter);
    return total;
  }

  // The sum over all roots of owned range number s; `before`: count of numbers in the bucket's owned ranges before it.
  // Null: no root has a gradient there.
  float* sum_of(std::size_t bucket, std::size_t s, std::int64_t before) const {
    const BucketState& state = states_[bucket];
    const std::span<const NumberRange> ranges = own_ranges(bucket);
    TreeSum<float*, AddNumbers> tree({device(), ranges[s].count});
    std::size_t other = 0;
    for (std::size_t rank = 0; rank < roots_of_.size(); ++rank) {
      for (std::size_t r = 0; r < roots_of_[rank].size(); ++r) {
        float* numbers = nullptr;
        if (static_cast<int>(rank) == division_.processes.rank()) {
          const Tensor& gradient = own_[r][ranges[s].parameter];
          if (gradient) numbers = gradient.data() + ranges[s].first;
        } else {
          if (state.roots.back()->came(other * ranges.size() + s)) numbers = state.memory[other].data() + before;
          ++other;
        }
        tree.push(roots_of_[rank][r], numbers);
      }
    }
    return tree.finish().value_or(nullptr);
  }

  const Division& division_;
  const ParameterSet& parameters_;
  const Result result_;
  const std::vector<Bucket>& buckets_;
  std::vector<std::vector<TreeNode>> roots_of_;  // by rank
  std::vector<GradientSet> own_;                 // values of the own roots; filled as they are completed
  std::vector<BucketState> states_;              // by bucket
  std::vector<std::size_t> order_;               // buckets that wait for roots of others, in the order of their sends
  std::size_t next_ = 0;                         // index in order_ of the first bucket that is not added yet
  std::string has_;                              // by parameter: '1' where an own root has a gradient
  GradientSet total_, sent_;                     // by parameter; sent_: the same sums as sent, on host or device
};

ProcessSum::ProcessSum(const Division& division, ParameterSet& parameters, Result result)
    : division_(division), parameters_(parameters), result_(result), taken_(parameters.all().size()) {
  for (std::size_t i = 0; i < taken_.size(); ++i) number_of_[parameters.all()[i].get()] = i;
}

ProcessSum::~ProcessSum() = default;

void ProcessSum::begin(std::span<const LeafRange> of_rank) {
  accumulator_.clear();
  taken_.assign(taken_.size(), false);
  if (division_.processes.size() > 1) batch_ = std::make_unique<Batch>(division_, parameters_, result_, of_rank);
}

void ProcessSum::take_number(std::int64_t leaf, std::size_t parameter) {
  Tensor gradient = std::exchange(parameters_.all()[parameter]->grad, Tensor());
  accumulator_.add(leaf, parameter, taken_.size(), std::move(gradient));
  taken_[parameter] = true;
  if (batch_) batch_->complete(leaf, parameter, accumulator_);
}

void ProcessSum::take(std::int64_t leaf, const Parameter& parameter) {
  take_number(leaf, number_of_.at(&parameter));
}

void ProcessSum::take_rest(std::int64_t leaf) {
  for (std::size_t i = taken_.size(); i-- > 0;) {
    const Parameter& parameter = *parameters_.all()[i];
    if (taken_[i] && parameter.grad) {
      fail("gradients", "{} was taken as final and changed afterwards: a function uses it and does not say so",
           parameter.name);
    }
    if (!taken_[i]) take_number(leaf, i);
  }
  taken_.assign(taken_.size(), false);
}

GradientSet ProcessSum::finish() {
  if (!batch_) return accumulator_.finish();
  GradientSet total = batch_->finish();
  batch_.reset();
  accumulator_.clear();
  return total;
}

}  // namespace etc
