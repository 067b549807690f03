// Texts prepared as segments, and small models for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/text/character_vocab.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/dense_config.h"
#include "tasks/lm/prepare.h"
#include "tasks/registry.h"
#include "tasks/train/model.h"
#include "tasks/train/run_config.h"
#include "tests/core/encoder_sizes.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace etc::test {

inline constexpr const char* kTextEnd = "</s>";

class LmScene {
 public:
  explicit LmScene(const std::string& characters = "\n abcdef") {
    write_file(path("v.chars"), data::character_vocab_text(std::u32string(characters.begin(), characters.end())));
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // A preparation with the scene's vocabulary.
  std::unique_ptr<lm::LmPreparation> preparation(std::int64_t segment_length,
                                                 lm::TextEnds ends = lm::TextEnds::files) const {
    lm::PrepareConfig config;
    config.segment_length = segment_length;
    config.text_ends = ends;
    return std::make_unique<lm::LmPreparation>(config, data::load_tokenizer(path("v.chars")));
  }

  // The data set `name` of these raw texts, each in a file of its own.
  prepare::Counts prepare(const std::string& name, const prepare::Preparation& preparation,
                          const std::vector<std::string>& texts) const {
    prepare::RunOptions run;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      run.inputs.push_back(path("text" + std::to_string(i)));
      write_file(run.inputs.back(), texts[i]);
    }
    run.output = path(name);
    run.report = path("report.jsonl");
    run.split = "train";
    return prepare::run(preparation, run);
  }

 private:
  TemporaryFolder folder_;
};

// A causal encoder of two layers with Transformer-XL's positions and residual scores.
inline DenseConfig small_lm(std::int64_t memory_length, std::int64_t layers = 2) {
  DenseConfig config =
      with_sizes(DenseConfig(), {.vocabulary = 10, .hidden = 16, .layers = layers, .heads = 2, .feed_forward = 24});
  config.segment_vocab_size = 2;
  config.max_absolute_position_embeddings = 0;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  config.initializer_range = 0.3;
  config.causal = true;
  config.memory_length = memory_length;
  config.relative_positions = DenseConfig::Method::transformer_xl;
  config.use_residual_attention = true;
  return config;
}

// A freshly initialised model; the values depend only on the sizes.
struct SmallLm {
  TaskModel model;
  explicit SmallLm(const DenseConfig& config) : model(config, default_config("lm", "dense").at("task")) {
    register_cpu_backend();
    model.parameters.initialize(3);
  }
};

inline std::vector<data::LoadedExample> examples_of(const std::string& file) {
  const data::DatasetReader reader({file}, task_kind("lm").make(section_of_task("lm"), small_lm(0))->schema());
  std::vector<data::LoadedExample> examples;
  for (std::int64_t i = 0; i < reader.size(); ++i) examples.push_back({i, i, reader.read(i)});
  return examples;
}

}  // namespace etc::test
