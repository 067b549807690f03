// From generated records to scores: what the command tests of a task with a generator have in common.
#pragma once

#include <filesystem>
#include <string>

#include "etc_core/base/files.h"
#include "tests/tasks/command_scene.h"

namespace etc::test {

// Options of a dense encoder that trains in seconds, for records of any vocabulary.
inline Words small_dense_model(const std::string& steps = "10") {
  Words words = {"--model-kind", "dense", "--vocab-size", "30522", "--hidden-size", "32", "--num-hidden-layers", "2"};
  return joined(words,
                {"--num-attention-heads", "2", "--intermediate-size", "64", "--batch-size", "4", "--steps", steps});
}

// A scene with generated records and train.h5 and dev.h5 made of them.
class GeneratedScene : public CommandScene {
 public:
  // How the records are generated and both files are prepared; prepare_dev holds additional options for dev.h5.
  struct Records {
    std::string form;  // the raw files' extension
    Words sample, prepare = {}, prepare_dev = {};
  };

  GeneratedScene(const std::string& task, const Records& records) : CommandScene(task), form_(records.form) {
    run(joined({"sample", "--task", task, "--output", path("sample")}, records.sample));
    prepare("train", raw("train"), vocabulary(), "train.h5", records.prepare);
    prepare("dev", raw("dev"), vocabulary(), "dev.h5", joined(records.prepare, records.prepare_dev));
  }

  std::string raw(const std::string& split) const { return path("sample/" + split + form_); }
  std::string vocabulary() const { return path("sample/vocab.txt"); }
  std::string best() const { return path("run/best"); }

  // Removes an earlier run and trains from scratch.
  void train(const Words& model) const {
    std::filesystem::remove_all(path("run"));
    CommandScene::train(vocabulary(), model);
  }

  // The standard output of `etc COMMAND` with the best checkpoint and dev.h5.
  std::string with_best(const std::string& command, const Words& more = {}) const {
    return run(joined({command, "--model", best(), "--data", path("dev.h5")}, more));
  }
  double evaluated(const std::string& metric) const { return value_of(with_best("eval"), metric); }

  // The output of `etc eval` for the model, which writes `file`, and for that file with the raw records.
  struct Scores {
    std::string by_model, by_file;
  };
  Scores scores(const std::string& task, const std::string& file) const {
    Scores scores;
    scores.by_model = with_best("eval", {"--output", path(file)});
    scores.by_file = run({"eval", "--task", task, "--predictions", path(file), "--gold", raw("dev")});
    return scores;
  }

  // Checks that raw and prepared records give the same predictions. Returns what --show prints for the first record.
  std::string same_predictions(const std::string& file) const {
    with_best("predict", {"--output", path(file)});
    run({"predict", "--model", best(), "--input", raw("dev"), "--output", path("raw")});
    CHECK(read_file(path("raw")) == read_file(path(file)));
    return run({"predict", "--model", best(), "--input", raw("dev"), "--show", "1"});
  }

 private:
  std::string form_;
};

}  // namespace etc::test
