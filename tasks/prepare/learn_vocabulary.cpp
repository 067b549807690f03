#include "tasks/prepare/learn_vocabulary.h"

#include "data/text/wordpiece_trainer.h"
#include "etc_core/base/error.h"
#include "etc_core/base/files.h"
#include "etc_core/base/json.h"
#include "etc_core/base/log.h"
#include "tasks/prepare/inputs.h"
#include "tasks/prepare/text_progress.h"
#include "tasks/train/stop_signal.h"

namespace etc::prepare {

void learn_vocabulary(const std::string& task, const PreparationKind& kind, const Json& settings, std::int64_t size,
                      const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& output) {
  if (kind.texts == nullptr) fail_usage("etc prepare", "--learn-vocab: task {} has no texts to learn from", task);
  for (const auto& input : inputs) check_input(input);
  data::WordpieceTraining training;
  training.size = size;
  training.lower_case = settings.value("do_lower_case", true);
  TextProgress progress("learn vocabulary", inputs, 1);
  std::int64_t texts = 0;
  const data::WordCounts words = data::count_words(
      [&](const auto& visit) {
        for (const auto& input : inputs) {
          kind.texts(input, settings, [&](std::string_view text) {
            visit(text);
            progress.add_text(text);
            ++texts;
          });
          progress.end_file();
        }
      },
      training.lower_case);
  progress.finish();
  const std::vector<std::string> pieces = data::learn_wordpiece(words, training);
  std::string lines;
  for (const std::string& piece : pieces) lines += piece + "\n";
  write_learned(output, lines);
  log::info("{}: {} pieces learned from {} texts with {} different words", output.string(), pieces.size(), texts,
            words.size());
}

void write_learned(const std::filesystem::path& output, std::string_view bytes) {
  const StopSignal listening;
  AtomicFile file(output);
  file.write(bytes);
  if (StopSignal::requested()) {
    throw Interrupted(fmt::format("prepare: stopped by {}: {} was not written", StopSignal::name(), output.string()));
  }
  file.commit();
}

}  // namespace etc::prepare
