// Groups of queries that are analysed apart: what kind of token a query is, told by the types and ids of the data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/nn/encoder_input.h"

namespace etc::analyze {

enum class QueryGroup : int { all, cls, question, candidate, sentence_globals, paragraph_globals };

// Their names on the command line and in files, by number.
const std::vector<std::string>& query_group_names();

// The groups of these names; none: all that there are. Throws UsageError with the list on others.
std::vector<QueryGroup> chosen_groups(const std::vector<std::string>& names);

// The task whose data are analysed, and the ids its global tokens have where they tell what these stand for.
struct TaskTokens {
  std::string task;
  std::int32_t question_id = -1, sentence_id = -1, paragraph_id = -1;

  static TaskTokens of(const data::DatasetInfo& info);
};

// Bit g of each long (global) token of the batch: whether it is in groups[g].
//   all                 every token
//   cls                 the first long token, and a global one that stands for it, of tasks whose sequence begins so
//   question, candidate by the token's type (wikihop, hotpotqa: of both kinds; squad, nq, glue: the first segment)
//   sentence_globals, paragraph_globals    by the global token's type (wikihop) or id (hotpotqa); of tasks that know
//                       no paragraphs every other global token stands for a sentence
std::vector<std::uint8_t> groups_of_long(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                         const EncoderInput& input);
std::vector<std::uint8_t> groups_of_global(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                           const EncoderInput& input);

}  // namespace etc::analyze
