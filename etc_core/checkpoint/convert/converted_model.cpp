#include "etc_core/checkpoint/convert/converted_model.h"

#include "etc_core/base/atomic_folder.h"
#include "etc_core/base/files.h"
#include "etc_core/checkpoint/tensor_file.h"

namespace etc::convert {

void save_converted_model(const std::filesystem::path& folder, const ConvertedModel& model,
                          const ConversionReport& report, const std::function<void(std::int64_t)>& written) {
  AtomicFolder update(folder, OldFiles::drop);
  write_model(update.path(), model.config, model.parameters, model.files, written);
  write_file_atomically(update.path() / "conversion.json", json_text(report.to_json()));
  const TfEtcExtras& extras = model.extras;
  if (!extras.slots.empty() || extras.global_step) {
    TensorFileWriter slots;
    for (const auto& [name, values] : extras.slots) slots.add(name, values);
    if (extras.global_step) slots.add_i64("global_step", {*extras.global_step});
    slots.write(update.path() / "optimizer_slots.safetensors");
  }
  update.commit();
}

}  // namespace etc::convert
