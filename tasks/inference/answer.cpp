#include "tasks/inference/answer.h"

#include <algorithm>

#include "etc_core/base/error.h"
#include "tasks/registry.h"
#include "tasks/train/evaluate.h"

namespace etc {

std::size_t end_of_micro_batch(Running& running, Examples examples, std::size_t first, const std::string& where) {
  const data::Schema& schema = running.model.task->schema();
  while (true) {
    std::size_t end = first;
    for (std::int64_t tokens = 0; end < examples.size(); ++end) {
      tokens += tokens_of(examples[end].features, schema);
      if (end > first && tokens > running.micro_batch_tokens) break;
    }
    if (running.fit == nullptr) return end;
    const Examples chosen = examples.subspan(first, end - first);
    const CountedCall call = counted_prediction(running.model, running.types, chosen, where);
    if (running.fit->fits(call)) return end;
    if (chosen.size() == 1) {
      const EncoderInput input = running.model.task->feed(chosen, where);
      running.fit->refuse(fmt::format("{}: record {}", where, chosen.front().index), input.long_tokens(),
                          input.global_tokens(), call);
    }
    running.micro_batch_tokens = std::max<std::int64_t>(1, running.micro_batch_tokens / 2);
  }
}

Json answer_of(Running& running, Examples examples, const std::string& where) {
  const ExampleRange all{0, examples.size()};
  const auto end_of = [&](std::size_t first) { return end_of_micro_batch(running, examples, first, where); };
  return answers_of(running.model, examples, {&all, 1}, end_of, where).front();
}

std::vector<Json> answers_of(TaskModel& model, Examples examples, std::span<const ExampleRange> records,
                             const std::function<std::size_t(std::size_t first)>& end_of_micro_batch,
                             const std::string& where) {
  std::vector<std::unique_ptr<RecordAnswer>> answers;
  for (std::size_t i = 0; i < records.size(); ++i) answers.push_back(model.task->start_answer());
  for (std::size_t first = 0; first < examples.size();) {
    const std::size_t end = end_of_micro_batch(first);
    const Examples some = examples.subspan(first, end - first);
    EncoderInput input = model.task->feed(some, where);
    Tape tape(Recording::off);
    const HeadOutput logits = model.forward_in_place(tape, some, input, ForwardOptions{});
    for (std::size_t i = 0; i < records.size(); ++i) {
      const std::size_t own_first = std::max(first, records[i].first), own_end = std::min(end, records[i].end);
      if (own_first < own_end) answers[i]->add(some, input, logits, {own_first - first, own_end - first});
    }
    first = end;
  }
  std::vector<Json> all;
  for (const auto& answer : answers) all.push_back(answer->finish());
  return all;
}

void require_answers(const Task& task, const std::string& task_name, const std::string& where) {
  if (task.start_answer() != nullptr) return;
  const TaskEntry* const own = find_task(task_name);
  const bool translates = own != nullptr && own->translator.open != nullptr;
  fail_usage(where, "task {} has no answers to single records ({})", task_name,
             translates ? "etc translate reads lines with it" : "its predictions come in files: etc predict --output");
}

}  // namespace etc
