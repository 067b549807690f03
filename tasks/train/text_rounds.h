// Evaluation of texts by a model with memory: segments of several texts are computed together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tasks/task.h"
#include "tasks/train/model.h"

namespace etc {

// Groups these consecutive examples of a data set into rounds that are computed together, as indices among them: a
// round holds at most one segment of each text, and a text's segments are in order in consecutive rounds. The first
// text, which may continue examples before these, starts in the first round; the last one, which may continue after
// them, ends in the last round.
std::vector<std::vector<std::size_t>> text_rounds(const Task& task, Examples examples);

// Predicts the examples in these rounds and adds them to the predictions in their own order. An example's bits are
// those of one example at a time. Needs a model that carries memory, and a task whose head has a row for each token of
// an example. Cost beside the passes: a copy of the head's output if several texts are computed together.
void predict_texts(TaskModel& model, Examples examples, const std::string& where, Predictions& predictions);

}  // namespace etc
