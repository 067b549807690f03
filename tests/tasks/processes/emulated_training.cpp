// emulated_training DATA RUN hosts|linked: trains two steps on an emulated device, alone or as one of several
// processes, whose gradients are exchanged through the hosts or over a link between the devices. Two processes shard
// the moments, other numbers do not.
#include <cstdio>
#include <cstring>

#include "etc_core/base/device_memory.h"
#include "etc_core/comm/device_link.h"
#include "etc_core/comm/launch.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/train/trainer.h"
#include "tests/tasks/wikihop/examples.h"

using namespace etc;

namespace {

bool g_linked = false;

// An emulated link between the emulated devices: when it is told to carry messages, it sends them through the hosts
// instead of NCCL. The tag is the number of the round, so that each round meets the same round of the other processes.
class EmulatedLink : public DeviceLink {
 public:
  explicit EmulatedLink(Communicator& processes) : processes_(processes) {}

  Mark mark() override { return nullptr; }

  Mark carry(const Mark&, std::span<const Outgoing> out, std::span<const Incoming> in) override {
    const auto round = std::make_shared<Round>();
    const auto memory = std::make_shared<std::vector<std::string>>();
    memory->reserve(out.size() + in.size());
    std::vector<Outgoing> sent;
    std::vector<Incoming> received;
    for (const Outgoing& message : out) {
      std::string& bytes = memory->emplace_back(static_cast<std::size_t>(message.bytes), '\0');
      copy_bytes(Device::cpu, bytes.data(), Device::cuda, message.data, message.bytes);
      sent.push_back({message.to, bytes.data(), message.bytes});
    }
    for (const Incoming& message : in) {
      std::string& bytes = memory->emplace_back(static_cast<std::size_t>(message.bytes), '\0');
      received.push_back({message.from, bytes.data(), message.bytes});
      round->places.push_back({message, bytes.data()});
    }
    round->transfer = processes_.start(30'000 + ++rounds_ % 1000, sent, received, memory);
    return round;
  }

  bool over(const Mark& mark) override {
    auto& round = *static_cast<Round*>(mark.get());
    if (!processes_.done(*round.transfer)) return false;
    for (const auto& [message, bytes] : round.places) {
      copy_bytes(Device::cuda, message.data, Device::cpu, bytes, message.bytes);
    }
    round.places.clear();
    return true;
  }

 private:
  struct Round {
    std::shared_ptr<Transfer> transfer;
    std::vector<std::pair<Incoming, const char*>> places;
  };

  Communicator& processes_;
  int rounds_ = 0;
};

}  // namespace

std::unique_ptr<DeviceLink> etc::open_device_link(Communicator& processes) {
  return g_linked ? std::make_unique<EmulatedLink>(processes) : nullptr;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  g_linked = std::strcmp(argv[3], "linked") == 0;
  const std::unique_ptr<Communicator> joined = launched_with_others() ? join_processes() : nullptr;
  try {
    add_backend(cuda_backend());
    Json config = default_config("wikihop");
    EtcConfig model = test::tiny_model();
    model.use_residual_attention = true;
    config["model"] = model.to_json();
    overlay_config(config,
                   {{"data", {{"train", {argv[1]}}, {"eval", {argv[1]}}}},
                    {"training",
                     {{"batch_size", 4},
                      {"micro_batch_tokens", 60},
                      {"steps", 2},
                      {"learning_rate", 0.003},
                      {"threads", 1},
                      {"device", "cuda"}}}},
                   "test");
    config["training"]["shard_moments"] = joined != nullptr && joined->size() == 2;
    config["training"]["bucket_bytes"] = 4096;
    train(run_config_from_json(config, "test"), argv[2], joined ? *joined : one_process());
  } catch (const std::exception& error) {
    if (joined) joined->end_all(error.what(), 1);
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
