#include "tasks/train/text_rounds.h"

#include <algorithm>

#include "tasks/train/carried_memory.h"

namespace etc {

namespace {

using Rounds = std::vector<std::vector<std::size_t>>;

// Whether the concatenated rounds are the examples in their order.
bool in_order(const Rounds& rounds) {
  std::size_t next = 0;
  for (const auto& round : rounds) {
    for (const std::size_t place : round) {
      if (place != next++) return false;
    }
  }
  return true;
}

// Collects rows of the head's outputs at the position of their example among all.
class GatheredRows {
 public:
  explicit GatheredRows(const EncoderInput& all) : offsets_(all.long_offsets) {}

  void put(const std::vector<std::size_t>& round, const EncoderInput& input, const HeadOutput& outputs) {
    rows_.resize(outputs.size());
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const Tensor values = outputs[k].value().to(Device::cpu);
      device_ = outputs[k].value().device();
      const std::int64_t width = values.cols();
      if (!rows_[k]) rows_[k] = Tensor::empty({offsets_.back(), width}, Purpose::activations);
      for (std::size_t b = 0; b < round.size(); ++b) {
        std::copy(values.data() + input.long_offsets[b] * width, values.data() + input.long_offsets[b + 1] * width,
                  rows_[k].data() + offsets_[round[b]] * width);
      }
    }
  }

  HeadOutput outputs() const {
    HeadOutput all;
    for (const Tensor& rows : rows_) all.emplace_back(rows.to(device_));
    return all;
  }

 private:
  const std::vector<std::int64_t> offsets_;  // [B+1]
  std::vector<Tensor> rows_;
  Device device_ = Device::cpu;
};

}  // namespace

Rounds text_rounds(const Task& task, Examples examples) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    if (i == 0 || task.begins_text(examples[i])) begins.push_back(i);
  }
  begins.push_back(examples.size());
  std::size_t longest = 0;
  for (std::size_t t = 0; t + 1 < begins.size(); ++t) longest = std::max(longest, begins[t + 1] - begins[t]);
  Rounds rounds(longest);
  for (std::size_t t = 0; t + 1 < begins.size(); ++t) {
    const std::size_t segments = begins[t + 1] - begins[t];
    const bool last = t > 0 && t + 2 == begins.size();
    for (std::size_t s = 0; s < segments; ++s) rounds[s + (last ? longest - segments : 0)].push_back(begins[t] + s);
  }
  return rounds;
}

void predict_texts(TaskModel& model, Examples examples, const std::string& where, Predictions& predictions) {
  const Rounds rounds = text_rounds(*model.task, examples);
  const bool ordered = in_order(rounds);
  const EncoderInput all = model.task->feed(examples, where);
  GatheredRows gathered(all);
  for (const auto& round : rounds) {
    std::vector<data::LoadedExample> own;
    for (const std::size_t place : round) own.push_back(examples[place]);
    EncoderInput input = model.task->feed(own, where);
    Tape tape(Recording::off);
    const HeadOutput outputs = model.forward_in_place(tape, own, input, ForwardOptions{});
    model.memory->commit();
    if (ordered) {
      predictions.add(own, input, outputs);
    } else {
      gathered.put(round, input, outputs);
    }
  }
  if (!ordered) predictions.add(examples, all, gathered.outputs());
}

}  // namespace etc
