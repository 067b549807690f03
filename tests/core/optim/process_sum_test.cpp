// Gradients of several processes, and updates divided among them: the bits of one process, for any number of them.
#include "etc_core/optim/process_sum.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <random>

#include "etc_core/ops/register.h"
#include "etc_core/ops/update_block.h"
#include "etc_core/optim/optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/thread_processes.h"

using namespace etc;
using test::run_processes;

namespace {

[[maybe_unused]] const bool kRegistered = (ops::register_cpu_ops(), true);

// Sizes around those of blocks; a process may own a part of one parameter or several of them.
const std::vector<std::int64_t> kSizes = {1, ops::kBlockSize, 5, 2 * ops::kBlockSize + 17, 300};

void add_parameters(ParameterSet& set) {
  const char* names[] = {"a/kernel", "b/kernel", "c/bias", "d/kernel", "unused"};
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    set.add(names[i], {kSizes[i]}, {Initializer::Kind::normal, 1});
  }
  set.initialize(3);
}

// Of micro-batch `leaf`: numbers whose sums depend on the order. The last parameter never has a gradient, others have
// none in some micro-batches.
GradientSet gradients_of(std::int64_t leaf) {
  std::mt19937 random(static_cast<unsigned>(leaf) + 1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  GradientSet set;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    Tensor values;
    const bool missing = i + 1 == kSizes.size() || (leaf + static_cast<std::int64_t>(i)) % 3 == 0;
    if (!missing) values = Tensor::empty({kSizes[i]}, Purpose::gradients);
    for (std::int64_t n = 0; values && n < kSizes[i]; ++n) {
      values.data()[n] = uniform(random) * std::pow(10.0f, static_cast<float>((leaf + n) % 5));
    }
    set.push_back(values);
  }
  return set;
}

// Leaves first … end-1 of a batch, as one process adds them.
GradientAccumulator added(std::int64_t first, std::int64_t end) {
  GradientAccumulator accumulator;
  for (std::int64_t leaf = first; leaf < end; ++leaf) accumulator.add(leaf, gradients_of(leaf));
  return accumulator;
}

void require_equal(const Tensor& got, const Tensor& expected) {
  REQUIRE(static_cast<bool>(got) == static_cast<bool>(expected));
  if (!got) return;
  REQUIRE(got.size() == expected.size());
  REQUIRE(std::memcmp(got.data(), expected.data(), static_cast<std::size_t>(got.size()) * sizeof(float)) == 0);
}

// Catch's assertions are for one thread at a time.
std::mutex& assertions() {
  static std::mutex mutex;
  return mutex;
}

std::int64_t first_leaf(std::int64_t leaves, int rank, int size) {
  return leaves * rank / size;
}

}  // namespace

TEST_CASE("processes with any shares of the micro-batches get the bits of one process", "[optim][comm]") {
  for (const std::int64_t leaves : {1, 2, 3, 5, 6, 8, 13}) {
    const GradientSet expected = added(0, leaves).finish();
    for (const int size : {1, 2, 3, 4, 8}) {
      run_processes(size, [&](Communicator& processes) {
        ParameterSet parameters;
        add_parameters(parameters);
        const Shards shards(parameters, size);
        const Division division{processes, shards};
        const int rank = processes.rank();
        auto own = added(first_leaf(leaves, rank, size), first_leaf(leaves, rank + 1, size));
        const GradientSet sum = sum_own_share(division, parameters, own.take_roots());
        spread(division, sum);
        const std::lock_guard lock(assertions());
        CAPTURE(leaves, size, rank);
        REQUIRE(sum.size() == expected.size());
        for (std::size_t i = 0; i < sum.size(); ++i) require_equal(sum[i], expected[i]);
      });
    }
  }
}

TEST_CASE("a sum among 2^k processes takes the bytes of one reduction and one broadcast", "[optim][comm]") {
  std::int64_t numbers = 0;  // that have a gradient in every micro-batch
  for (const std::int64_t size : {ops::kBlockSize * 8, ops::kBlockSize * 8}) numbers += size;
  for (const int size : {2, 4, 8}) {
    std::int64_t sent = 0;
    run_processes(size, [&](Communicator& processes) {
      ParameterSet parameters;
      for (const char* name : {"a", "b"}) parameters.add(name, {numbers / 2}, {});
      parameters.initialize(1);
      const Shards shards(parameters, size);
      const Division division{processes, shards};
      GradientAccumulator accumulator;
      for (std::int64_t leaf = 2 * processes.rank(); leaf < 2 * processes.rank() + 2; ++leaf) {
        accumulator.add(
            leaf, {Tensor::zeros({numbers / 2}, Purpose::gradients), Tensor::zeros({numbers / 2}, Purpose::gradients)});
      }
      spread(division, sum_own_share(division, parameters, accumulator.take_roots()));
      const std::lock_guard lock(assertions());
      sent += processes.bytes_sent();
    });
    const std::int64_t least = 2 * (size - 1) * numbers * static_cast<std::int64_t>(sizeof(float));
    CAPTURE(size, sent, least);
    CHECK(sent >= least);
    CHECK(static_cast<double>(sent) <= 1.01 * static_cast<double>(least));
  }
}

TEST_CASE("an update divided among processes has the bits of one process, and so have its moments", "[optim][comm]") {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::lamb}) {
    OptimizerOptions options;
    options.kind = kind;
    constexpr int kSteps = 3;
    ParameterSet alone;
    add_parameters(alone);
    Optimizer whole(options);
    std::vector<double> norms;
    for (int step = 0; step < kSteps; ++step) {
      put_gradients(alone, gradients_of(step));
      norms.push_back(global_norm(param_refs(alone)));
      whole.step(param_refs(alone), 0.1, clip_scale(norms.back(), 1));
    }
    const auto moments = whole.moments();
    for (const int size : {2, 3, 5}) {
      run_processes(size, [&](Communicator& processes) {
        ParameterSet parameters;
        add_parameters(parameters);
        const Shards shards(parameters, size);
        const Division division{processes, shards};
        Optimizer optimizer(options, &division);
        std::vector<double> found;
        const auto step_at = [&](Optimizer& by, int step) {
          put_gradients(parameters, gradients_of(step));
          found.push_back(global_norm(param_refs(parameters), &division));
          by.step(param_refs(parameters), 0.1, clip_scale(found.back(), 1));
          std::vector<Tensor> weights;
          for (const auto& parameter : parameters.all()) weights.push_back(parameter->value);
          spread(division, weights);
        };
        step_at(optimizer, 0);
        step_at(optimizer, 1);
        // A run that is saved and goes on.
        std::map<std::string, Tensor> saved = optimizer.moments();
        if (!processes.first()) {
          for (const auto& [name, tensor] : saved) FAIL(name);
        }
        for (const auto& parameter : parameters.all()) {
          if (parameter->name == "unused") continue;
          for (const char* moment : {"/adam_m", "/adam_v"}) {
            Tensor& tensor = saved[parameter->name + moment];
            if (!processes.first()) tensor = Tensor::empty({parameter->size()}, Purpose::moments);
            broadcast(processes, tensor.data(), tensor.size() * static_cast<std::int64_t>(sizeof(float)));
          }
        }
        Optimizer resumed(options, &division);
        resumed.set_moments(saved, param_refs(parameters));
        step_at(resumed, 2);
        const auto collected = resumed.moments();
        const std::lock_guard lock(assertions());
        CAPTURE(size, processes.rank());
        REQUIRE(found == norms);
        for (const auto& parameter : parameters.all()) require_equal(parameter->value, alone.at(parameter->name).value);
        REQUIRE(collected.size() == (processes.first() ? moments.size() : 0));
        for (const auto& [name, tensor] : collected) require_equal(tensor, moments.at(name));
      });
    }
  }
}

TEST_CASE("shards own every number once, in order, in parts as equal as blocks allow", "[optim]") {
  for (const int ranks : {1, 2, 3, 7, 100}) {
    const Shards shards(kSizes, ranks);
    std::size_t parameter = 0;
    std::int64_t next = 0, all = 0, most = 0;
    for (const std::int64_t size : kSizes) all += size;
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t own = 0;
      for (const NumberRange& stretch : shards.of(rank)) {
        if (next == kSizes[parameter]) {
          ++parameter;
          next = 0;
        }
        REQUIRE(stretch.parameter == parameter);
        REQUIRE(stretch.first == next);
        REQUIRE(stretch.first % ops::kBlockSize == 0);
        next += stretch.count;
        own += stretch.count;
      }
      most = std::max(most, own);
    }
    CAPTURE(ranks);
    CHECK(parameter + 1 == kSizes.size());
    CHECK(next == kSizes.back());
    CHECK(most <= all / ranks + ops::kBlockSize);
  }
}
