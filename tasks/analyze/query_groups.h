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

// The task whose data are analysed, and the ids in them that identify kinds of tokens; -1: the data name no such id.
struct TaskTokens {
  std::string task;
  std::int32_t question_id = -1, sentence_id = -1, paragraph_id = -1;  // of global tokens
  std::int32_t sep_id = -1;

  static TaskTokens of(const data::DatasetInfo& info);
};

// Bit g of each long (global) token of the batch: whether it is in groups[g]. A token is of one kind at most.
//   all                 every token
//   cls                 the first long token and its global copy, in tasks whose sequence begins with CLS
//   question, candidate of long tokens by type (wikihop, hotpotqa) or place (squad, glue: the first segment; nq: up to
//                       the first SEP, included)
//                       of global tokens by type (wikihop) or id (hotpotqa, nq); squad: the copies of the first segment
//   sentence_globals, paragraph_globals    by type (wikihop) or id (hotpotqa, nq); in other tasks every global token that
//                       copies no long token counts as a sentence
std::vector<std::uint8_t> groups_of_long(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                         const EncoderInput& input);
std::vector<std::uint8_t> groups_of_global(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                           const EncoderInput& input);

}  // namespace etc::analyze
