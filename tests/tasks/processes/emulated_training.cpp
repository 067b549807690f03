// emulated_training DATA RUN: trains two steps on an emulated device, alone or as one of several processes.
#include <cstdio>

#include "etc_core/base/error.h"
#include "etc_core/comm/launch.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/cuda/register_cuda.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/train/trainer.h"
#include "tests/tasks/wikihop/examples.h"

using namespace etc;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
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
    config["training"]["shard_moments"] = joined != nullptr;
    train(run_config_from_json(config, "test"), argv[2], joined ? *joined : one_process());
  } catch (const std::exception& error) {
    if (joined) joined->end_all(error.what(), 1);
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
