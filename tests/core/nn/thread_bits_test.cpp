// Training gives the same weights for any number of threads.

#include "etc_core/base/parallel.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/optim/optimizer.h"
#include "tests/core/nn/tiny_model.h"
#include "tests/support/catch.h"

using namespace etc;

// Rows of 3,072 floats and a whole block of tokens, sizes for which oneDNN chooses its kernel by the tile.
TEST_CASE("weights of a wide layer are the same after 3 steps with 1, 2, 3 and 16 threads", "[nn][plain]") {
  EtcConfig config = test::tiny_config();
  config.hidden_size = 256;
  config.intermediate_size = 3072;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 4;
  config.validate();
  const EncoderInput input = test::tiny_input(config, {540}, {20});
  const int before = thread_count();
  std::map<std::string, std::vector<float>> first;
  for (const int threads : {1, 2, 3, 16}) {
    CAPTURE(threads);
    set_thread_count(threads);
    test::TinyModel model(config);
    Optimizer optimizer{OptimizerOptions()};
    for (int step = 0; step < 3; ++step) {
      model.parameters.drop_gradients();
      model.backward(input);
      optimizer.step(param_refs(model.parameters), 1e-3, 1.0);
    }
    for (const auto& parameter : model.parameters.all()) {
      CAPTURE(parameter->name);
      const std::vector<float> weights(parameter->value.data(), parameter->value.data() + parameter->size());
      if (threads == 1) first[parameter->name] = weights;
      REQUIRE(weights == first.at(parameter->name));
    }
  }
  set_thread_count(before);
}
