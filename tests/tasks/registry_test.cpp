// One row per task, whole and found by its name.
#include "tasks/registry.h"

#include <set>

#include "etc_core/nn/etc_config.h"
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
    if (entry.name == "translation") continue;  // has no decoder yet, see below
    CHECK(entry.task.make != nullptr);
    Json section = {{"name", entry.name}};
    section.update(entry.task.keys.defaults());
    CHECK(make_task(section, EtcConfig{})->schema().task == entry.name);
  }
  CHECK(names.size() == task_names().size());
}

TEST_CASE("a task without a model is scored, prepared and generated, but not trained", "[tasks]") {
  CHECK_THROWS_WITH(make_task(section_of_task("translation"), EtcConfig{}),
                    "task: translation can be scored (`etc eval`), but not yet trained");
}

TEST_CASE("a task that nobody knows is refused with the nearest one", "[tasks]") {
  CHECK_THROWS_WITH(
      task_kind("wikihopp"),
      "task: expected one of wikihop, hotpotqa, nq, openkp, pretrain, squad, glue, translation, got wikihopp "
      "(did you mean wikihop?)");
  CHECK_THROWS_WITH(
      preparation_kind("np"),
      "etc prepare: unknown task np (did you mean nq?): expected wikihop, hotpotqa, nq, openkp, pretrain, squad, glue, "
      "translation");
}
