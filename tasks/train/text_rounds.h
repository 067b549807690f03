// Segments of texts evaluated by a model with memory, those of several texts side by side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tasks/task.h"
#include "tasks/train/model.h"

namespace etc {

// Which of these consecutive examples of a data set are computed together, as places among them: a segment of each text
// in a round, a text's segments in their order, in consecutive rounds. The first text, which may go on from examples
// before these, begins in the first round; the last one, which may go on behind them, ends in the last.
std::vector<std::vector<std::size_t>> text_rounds(const Task& task, Examples examples);

// Predicts them in these rounds and adds them to the predictions in their own order: an example's bits are those of one
// example at a time. Needs a model that carries memory, and a task whose head has a row for each token of an example.
// Cost beside the passes: where texts run side by side, a copy of the head's output.
void predict_texts(TaskModel& model, Examples examples, const std::string& where, Predictions& predictions);

}  // namespace etc
