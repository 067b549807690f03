// The registry has one complete row per task, which is found by the task's name.
#include "tasks/registry.h"

#include <set>

#include "etc_core/nn/dense_config.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/seq2seq/config.h"
#include "tests/support/catch.h"

using namespace etc;

TEST_CASE("a task's row names what trains it, what prepares its records and what generates them", "[tasks]") {
  std::set<std::string> names;
  for (const TaskEntry& entry : task_entries()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(entry.preparation.make != nullptr);
    CHECK(!entry.preparation.settings.empty());
    CHECK(entry.sample.write != nullptr);
    CHECK(&task_kind(entry.name) == &entry.task);
    CHECK(&preparation_kind(entry.name) == &entry.preparation);
    CHECK(entry.task.score != nullptr);
    CHECK(entry.task.make != nullptr);
    Json section = {{"name", entry.name}};
    section.update(entry.task.keys.defaults());
    DenseConfig causal;
    causal.causal = true;
    const ModelConfig model = entry.name == "translation" ? ModelConfig(Seq2SeqConfig())
                              : entry.name == "lm"        ? ModelConfig(causal)
                                                          : ModelConfig(EtcConfig());
    CHECK(make_task(section, *model)->schema().task == entry.name);
  }
  CHECK(names.size() == task_names().size());
}

TEST_CASE("an encoder-decoder is for translation, and translation for nothing else", "[tasks]") {
  CHECK_THROWS_WITH(make_task(section_of_task("translation"), EtcConfig{}),
                    "config: model.kind: task translation trains an encoder-decoder: expected seq2seq, got etc");
  CHECK_THROWS_WITH(make_task(section_of_task("nq"), Seq2SeqConfig()),
                    "config: model.kind: task nq reads the states of an encoder: expected etc or dense, got seq2seq");
}

TEST_CASE("a task that nobody knows is refused with the nearest one", "[tasks]") {
  const std::string expected =
      "task: expected one of wikihop, hotpotqa, nq, openkp, pretrain, squad, glue, translation, lm, got ";
  CHECK_THROWS_WITH(task_kind("wikihopp"), expected + "wikihopp (did you mean wikihop?)");
  CHECK_THROWS_WITH(preparation_kind("np"), expected + "np (did you mean nq?)");
}
