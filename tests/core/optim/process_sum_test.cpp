// Gradients of several processes, and updates divided among them: the same bits as with one process, for any number.
#include "etc_core/optim/process_sum.h"

#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>

#include "etc_core/ops/register.h"
#include "etc_core/ops/update_block.h"
#include "etc_core/optim/optimizer.h"
#include "tests/support/catch.h"
#include "tests/support/thread_processes.h"

using namespace etc;
using test::run_processes;

namespace {

[[maybe_unused]] const bool kOpsOfSums = (ops::register_cpu_ops(), true);

// Sizes around those of blocks; a process may own a part of one parameter or several of them.
const std::vector<std::int64_t> kSizes = {1, ops::kBlockSize, 5, 2 * ops::kBlockSize + 17, 300};

void add_parameters(ParameterSet& set) {
  const char* names[] = {"a/kernel", "b/kernel", "c/bias", "d/kernel", "unused"};
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    set.add(names[i], {kSizes[i]}, {Initializer::Kind::normal, 1});
  }
  set.initialize(3);
}

// Gradients of micro-batch `leaf`, whose sums depend on the order. The last parameter never has a gradient, others have
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

// The sum of this many leaves, computed by one process.
GradientSet added(std::int64_t leaves) {
  GradientAccumulator accumulator;
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) accumulator.add(leaf, gradients_of(leaf));
  return accumulator.finish();
}

std::vector<LeafRange> shares_of(std::int64_t leaves, int size) {
  std::vector<LeafRange> of_rank;
  for (int rank = 0; rank < size; ++rank) of_rank.push_back({leaves * rank / size, leaves * (rank + 1) / size});
  return of_rank;
}

// Passes the own leaves' gradients to `sum`: for even leaves one by one from the last parameter to the first, for odd
// leaves all at the end.
void take_own(ProcessSum& sum, ParameterSet& parameters, const LeafRange& own) {
  for (std::int64_t leaf = own.first; leaf < own.end; ++leaf) {
    put_gradients(parameters, gradients_of(leaf));
    for (std::size_t i = kSizes.size(); leaf % 2 == 0 && i-- > 0;) sum.take(leaf, *parameters.all()[i]);
    sum.take_rest(leaf);
  }
}

void require_equal(const Tensor& got, const Tensor& expected) {
  REQUIRE(static_cast<bool>(got) == static_cast<bool>(expected));
  if (!got) return;
  REQUIRE(got.size() == expected.size());
  REQUIRE(std::memcmp(got.data(), expected.data(), static_cast<std::size_t>(got.size()) * sizeof(float)) == 0);
}

// Messages between devices, with host memory in this test. As with NCCL, the first round meets the first round of the
// others, the second the second: with different orders, sizes do not match or a wait never ends.
class InOrder : public DeviceLink {
 public:
  explicit InOrder(Communicator& processes) : processes_(processes) {}
  Mark mark() override { return nullptr; }
  Mark carry(const Mark&, std::span<const Outgoing> out, std::span<const Incoming> in) override {
    const int number = ++rounds_ % 1000;  // meets the round of the same number of the others, whatever its tag
    return std::make_shared<std::shared_ptr<Transfer>>(processes_.start(30'000 + number, out, in, nullptr));
  }
  bool over(const Mark& mark) override {
    return processes_.done(**static_cast<std::shared_ptr<Transfer>*>(mark.get()));
  }

 private:
  Communicator& processes_;
  int rounds_ = 0;
};

// Catch's assertions must be used by one thread at a time.
std::mutex& assertions() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

namespace {

// Checks sums of this many leaves over all processes, for Result::whole and for own shares that are then spread.
void require_sums(const Division& division, std::int64_t leaves, const GradientSet& expected) {
  ParameterSet parameters;
  add_parameters(parameters);
  const std::vector<LeafRange> of_rank = shares_of(leaves, division.processes.size());
  const auto own = static_cast<std::size_t>(division.processes.rank());
  ProcessSum whole(division, parameters, ProcessSum::Result::whole);
  ProcessSum part(division, parameters, ProcessSum::Result::own_share);
  // Two batches: no state of one may affect the next.
  for (int batch = 0; batch < 2; ++batch) {
    whole.begin(of_rank);
    take_own(whole, parameters, of_rank[own]);
    const GradientSet sum = whole.finish();
    part.begin(of_rank);
    take_own(part, parameters, of_rank[own]);
    const GradientSet own_sum = part.finish();
    spread(division, own_sum);
    const std::lock_guard lock(assertions());
    CAPTURE(leaves, own, batch, division.rounds != nullptr);
    REQUIRE(sum.size() == expected.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      require_equal(sum[i], expected[i]);
      require_equal(own_sum[i], expected[i]);
    }
  }
}

}  // namespace

TEST_CASE("processes with any shares of the micro-batches and any buckets get the bits of one process",
          "[optim][comm]") {
  for (const std::int64_t leaves : {1, 2, 3, 5, 6, 13}) {
    const GradientSet expected = added(leaves);
    for (const int size : {1, 2, 3, 8}) {
      for (const std::int64_t bucket_bytes : {0, 4, 100'000}) {  // one bucket, one per parameter, several
        run_processes(size, [&](Communicator& processes) {
          const Shards shards(kSizes, size, bucket_bytes);
          require_sums({processes, shards, nullptr}, leaves, expected);
          if (size > 1) {
            const auto rounds = std::make_shared<DeviceRounds>(processes, std::make_unique<InOrder>(processes));
            require_sums({processes, shards, rounds}, leaves, expected);
          }
        });
      }
    }
  }
}

TEST_CASE("a gradient that changes after it was taken as final is an error", "[optim][comm]") {
  ParameterSet parameters;
  add_parameters(parameters);
  const Shards shards(parameters, 1);
  const Division division{one_process(), shards};
  ProcessSum sum(division, parameters, ProcessSum::Result::whole);
  const std::vector<LeafRange> all = shares_of(1, 1);
  sum.begin(all);
  put_gradients(parameters, gradients_of(1));
  sum.take(0, *parameters.all()[1]);
  parameters.all()[1]->gradient();
  REQUIRE_THROWS_WITH(sum.take_rest(0), Catch::Contains("b/kernel was taken as final and changed afterwards"));
}

TEST_CASE("a sum among 2^k processes takes the bytes of one reduction and one broadcast", "[optim][comm]") {
  std::int64_t numbers = 0;  // all have a gradient in every micro-batch
  for (const std::int64_t size : {ops::kBlockSize * 8, ops::kBlockSize * 8}) numbers += size;
  for (const int size : {2, 4, 8}) {
    std::int64_t sent = 0, most = 0;
    run_processes(size, [&](Communicator& processes) {
      ParameterSet parameters;
      for (const char* name : {"a", "b"}) parameters.add(name, {numbers / 2}, {});
      parameters.initialize(1);
      const Shards shards(parameters, size, numbers * 2);  // a bucket per parameter
      const Division division{processes, shards};
      ProcessSum sum(division, parameters, ProcessSum::Result::whole);
      sum.begin(shares_of(2 * size, size));
      for (std::int64_t leaf = 2 * processes.rank(); leaf < 2 * processes.rank() + 2; ++leaf) {
        for (const auto& parameter : parameters.all()) parameter->gradient();
        sum.take_rest(leaf);
      }
      sum.finish();
      const std::lock_guard lock(assertions());
      sent += processes.bytes_sent();
      most = std::max(most, processes.bytes_sent());
    });
    const std::int64_t least = 2 * (size - 1) * numbers * static_cast<std::int64_t>(sizeof(float));
    CAPTURE(size, sent, least);
    CHECK(sent >= least);
    CHECK(static_cast<double>(sent) <= 1.01 * static_cast<double>(least));
    CHECK(static_cast<double>(most) * size <= 1.01 * static_cast<double>(sent));  // no process sends for others
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
    for (const auto& [size, bucket_bytes] :
         {std::pair(2, 0), std::pair(3, 0), std::pair(5, 0), std::pair(3, 100'000)}) {
      run_processes(size, [&, size = size, bucket_bytes = bucket_bytes](Communicator& processes) {
        ParameterSet parameters;
        add_parameters(parameters);
        const Shards shards(parameters, size, bucket_bytes);
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
        // Save the moments and resume.
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
      for (const NumberRange& range : shards.of(rank)) {
        if (next == kSizes[parameter]) {
          ++parameter;
          next = 0;
        }
        REQUIRE(range.parameter == parameter);
        REQUIRE(range.first == next);
        REQUIRE(range.first % ops::kBlockSize == 0);
        next += range.count;
        own += range.count;
      }
      most = std::max(most, own);
    }
    CAPTURE(ranks);
    CHECK(parameter + 1 == kSizes.size());
    CHECK(next == kSizes.back());
    CHECK(most <= all / ranks + ops::kBlockSize);
  }
}

TEST_CASE("of every bucket each process owns its part, and buckets hold whole parameters", "[optim]") {
  const Shards shards(kSizes, 2, 4 * (ops::kBlockSize + 5));
  REQUIRE(shards.buckets().size() == 4);  // 1 and a block; 5; a parameter larger than a bucket; 300
  std::int64_t owned = 0;
  for (const Bucket& bucket : shards.buckets()) {
    for (const int rank : {0, 1}) {
      for (const NumberRange& range : shards.of(rank, bucket)) {
        REQUIRE(range.parameter >= bucket.first);
        REQUIRE(range.parameter < bucket.end);
        owned += range.count;
      }
    }
  }
  CHECK(owned == std::accumulate(kSizes.begin(), kSizes.end(), std::int64_t{0}));
  const Bucket& large = shards.buckets()[2];
  CHECK_FALSE(shards.of(0, large).empty());
  CHECK_FALSE(shards.of(1, large).empty());
}
