// Groups of queries that are analysed separately, by the kind of token, which follows from the types and ids of the data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/nn/encoder_input.h"

namespace etc::analyze {

enum class QueryGroup : int { all, cls, question, candidate, sentence_globals, paragraph_globals };

// The names of the groups on the command line and in files, by index.
const std::vector<std::string>& query_group_names();

// The groups of these names; without names all groups. Throws UsageError with the list for an unknown name.
std::vector<QueryGroup> chosen_groups(const std::vector<std::string>& names);

// The task whose data are analysed, and the ids of its global tokens if these ids identify their kind.
struct TaskTokens {
  std::string task;
  std::int32_t question_id = -1, sentence_id = -1, paragraph_id = -1;

  static TaskTokens of(const data::DatasetInfo& info);
};

// Bit g of each long (global) token of the batch: whether it is in groups[g].
//   all                 every token
//   cls                 the first long token and its global copy, for tasks whose sequence begins with CLS
//   question, candidate by the token's type (wikihop, hotpotqa: of both kinds; squad, nq, glue: the first segment)
//   sentence_globals, paragraph_globals    by the global token's type (wikihop) or id (hotpotqa); for tasks without
//                       paragraphs every other global token counts as a sentence
std::vector<std::uint8_t> groups_of_long(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                         const EncoderInput& input);
std::vector<std::uint8_t> groups_of_global(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                           const EncoderInput& input);

}  // namespace etc::analyze
