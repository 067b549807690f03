// A barely trained model of a task in its own folder, for tests of the interface that do not depend on the answers.
#pragma once

#include <string>

#include "tests/tasks/command_scene.h"

namespace etc::test {

class SmallScene : public CommandScene {
 public:
  // extension: of the task's sample files; more: settings of its preparation.
  SmallScene(const std::string& task, const std::string& extension, const Words& more = {})
      : CommandScene(task), records_(path("sample/dev" + extension)) {
    run({"sample", "--task", task, "--records", "10", "--output", path("sample")});
    const std::string vocab = path("sample/vocab.txt");
    prepare("train", path("sample/train" + extension), vocab, "train.h5", more);
    prepare("dev", records_, vocab, "dev.h5", more);
    train(vocab, small_model("1"));
  }

  const std::string& records() const { return records_; }  // raw, of the dev split

 private:
  std::string records_;
};

}  // namespace etc::test
