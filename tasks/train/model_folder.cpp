#include "tasks/train/model_folder.h"

#include "etc_core/base/error.h"
#include "etc_core/base/log.h"
#include "tasks/train/run_directory.h"

namespace etc {

namespace fs = std::filesystem;

fs::path model_folder(const fs::path& given) {
  if (fs::exists(given / "model.safetensors") || !is_run_folder(given)) return given;
  const fs::path best = given / "best";
  if (!fs::exists(best / "model.safetensors")) {
    fail(given.string(),
         "the run has no best checkpoint yet: expected a model folder (its latest state is in {}, if there is one)",
         (given / "last").string());
  }
  log::info("{} is a run: its best checkpoint, {}, is taken", given.string(), best.string());
  return best;
}

}  // namespace etc
