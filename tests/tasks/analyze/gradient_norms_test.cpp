// Gradient norms of layers (analysis 7): the layer and part that a parameter belongs to, and that a norm equals the
// slope of the loss along the gradient.
#include "tasks/analyze/gradient_norms.h"

#include "etc_core/base/parallel.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/analyze/model_analysis.h"
#include "tasks/train/evaluate.h"
#include "tasks/train/run_config.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/tasks/wikihop/examples.h"

namespace etc::analyze {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("parameters count in their layer, of scores or of the rest, by their names", "[analyze]") {
  const std::string etc = "etc_document_bert/global_local_transformer_layers/", bert = "bert/encoder/layer_3/";
  const auto at = [](const std::string& name) {
    const ParameterPlace place = place_of_parameter(name);
    return std::pair(place.layer, place.of_scores);
  };
  const std::string fused = etc + "fused_att_layer_11/fused_global_local_att/";
  CHECK(at(fused + "long_query_projection/linear/kernel") == std::pair(std::int64_t{11}, true));
  CHECK(at(fused + "l2g_key_projection/linear/bias") == std::pair(std::int64_t{11}, true));
  CHECK(at(fused + "global_qkv_attention/relative_emb_table") == std::pair(std::int64_t{11}, true));
  CHECK(at(fused + "l2l_value_projection/linear/kernel") == std::pair(std::int64_t{11}, false));
  CHECK(at(fused + "global_output_projection/kernel") == std::pair(std::int64_t{11}, false));
  CHECK(at(etc + "feed_forward_layer_2/dense_layers/layer_0/kernel") == std::pair(std::int64_t{2}, false));
  CHECK(at(bert + "attention/self/key/kernel") == std::pair(std::int64_t{3}, true));
  CHECK(at(bert + "attention/self/relative_bias_table") == std::pair(std::int64_t{3}, true));
  CHECK(at(bert + "attention/self/relative_value_table") == std::pair(std::int64_t{3}, false));
  CHECK(at(bert + "output/LayerNorm/gamma") == std::pair(std::int64_t{3}, false));
  // Parameters that belong to no single layer.
  for (const char* name : {"bert/embeddings/word_embeddings", "output_weights",
                           "global_output_layer/transform/dense_layers/layer_1/kernel"}) {
    CAPTURE(name);
    CHECK(place_of_parameter(name).layer == -1);
  }
}

// A freshly initialised model of two layers, with weights scaled up so that the scores are a few units, and labelled
// examples.
struct Scene {
  test::TemporaryFolder folder;
  std::shared_ptr<const data::DatasetReader> reader;
  std::unique_ptr<TaskModel> model;

  Scene() {
    register_cpu_backend();
    test::write_readable_dataset(folder / "train.h5", 0, 6);
    EtcConfig config = test::tiny_model();
    config.num_hidden_layers = 2;
    config.use_residual_attention = true;
    model = std::make_unique<TaskModel>(config, default_config("wikihop")["task"]);
    model->parameters.initialize(5);
    for (const auto& parameter : model->parameters.all()) {
      if (parameter->name.find("gamma") != std::string::npos) continue;
      for (std::int64_t i = 0; i < parameter->value.size(); ++i) parameter->value.data()[i] *= 6;
    }
    reader = open_dataset({(folder / "train.h5").string()}, model->task->schema(), {});
  }
  GradientNorms norms() const {
    const std::vector<std::int64_t> chosen{0, 2, 3, 5};
    return gradient_norms_of(*model, *reader, chosen, "train.h5");
  }
  // The loss of the same examples as one batch; the gradients stay in the parameters.
  double loss_of_batch() const {
    std::vector<data::LoadedExample> batch;
    std::vector<double> counts(model->task->loss_terms().size(), 0.0);
    for (const std::int64_t index : {0, 2, 3, 5}) batch.push_back({index, index, reader->read(index)});
    for (const data::LoadedExample& example : batch) model->task->count(example, counts);
    model->parameters.drop_gradients();
    return add_gradient(*model, batch, counts, "train.h5");
  }
};

TEST_CASE("a gradient norm is how fast the loss of all examples rises along it", "[analyze]") {
  const Scene scene;
  const GradientNorms norms = scene.norms();
  CHECK(norms.examples == 4);
  REQUIRE(norms.query_key.size() == 2);
  CHECK(norms.loss == Approx(scene.loss_of_batch()).epsilon(1e-5));
  for (const std::int64_t layer : {0, 1}) {
    for (const bool of_scores : {true, false}) {
      CAPTURE(layer, of_scores);
      const auto at = static_cast<std::size_t>(layer);
      const double norm = of_scores ? norms.query_key[at] : norms.rest[at];
      REQUIRE(norm > 1e-4);
      // Steps of equal length along the part's gradient, in both directions.
      std::vector<std::pair<Parameter*, std::vector<float>>> before;
      scene.loss_of_batch();
      std::vector<Tensor> gradients;
      for (const auto& parameter : scene.model->parameters.all()) {
        const ParameterPlace place = place_of_parameter(parameter->name);
        if (place.layer != layer || place.of_scores != of_scores || !parameter->grad) continue;
        const float* const values = parameter->value.data();
        before.emplace_back(parameter.get(), std::vector<float>(values, values + parameter->size()));
        gradients.push_back(parameter->grad.clone());
      }
      const auto loss_at = [&](double length) {
        for (std::size_t n = 0; n < before.size(); ++n) {
          auto& [parameter, values] = before[n];
          for (std::size_t i = 0; i < values.size(); ++i) {
            const double step = length / norm * static_cast<double>(gradients[n].data()[i]);
            parameter->value.data()[i] = static_cast<float>(static_cast<double>(values[i]) + step);
          }
          ++parameter->version;
        }
        return scene.loss_of_batch();
      };
      const double length = 0.02, slope = (loss_at(length) - loss_at(-length)) / (2 * length);
      loss_at(0);
      CHECK(slope == Approx(norm).epsilon(0.02));
    }
  }
}

TEST_CASE("gradient norms have the same bits for any thread count, and leave no gradient", "[analyze]") {
  const Scene scene;
  const GradientNorms first = scene.norms();
  const int threads = thread_count();
  set_thread_count(3);
  const GradientNorms second = scene.norms();
  set_thread_count(threads);
  CHECK(first.query_key == second.query_key);
  CHECK(first.rest == second.rest);
  for (const auto& parameter : scene.model->parameters.all()) CHECK_FALSE(parameter->grad);
}

TEST_CASE("a loss that is no number has no gradient norm: the example is named", "[analyze]") {
  const Scene scene;
  for (const auto& parameter : scene.model->parameters.all()) {
    if (!is_encoder_tensor(parameter->name)) parameter->value.data()[0] = std::nanf("");
  }
  CHECK_THROWS_WITH(scene.norms(), Contains("train.h5") && Contains("example 0: expected a loss, got nan"));
}

TEST_CASE("micro-batches hold the chosen examples in order, as many as fit or one", "[analyze]") {
  using Batches = std::vector<std::vector<std::int64_t>>;
  const std::vector<std::int64_t> tokens{5, 100, 4, 3, 9};
  CHECK(micro_batches_of(tokens, {0, 1, 3, 4}, 12) == Batches{{0}, {1}, {3, 4}});
  CHECK(micro_batches_of(tokens, {0, 2, 3}, 12) == Batches{{0, 2, 3}});
  CHECK(micro_batches_of(tokens, {}, 12).empty());
}

}  // namespace
}  // namespace etc::analyze
