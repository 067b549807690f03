#include "tasks/analyze/query_groups.h"

#include <algorithm>

#include "etc_core/base/error.h"

namespace etc::analyze {

namespace {

// The meaning of a task's token types. kNone: the task has no such type.
constexpr std::int32_t kNone = -1;
struct TokenTypes {
  const char* task;
  std::int32_t question, candidate;                                                   // of long tokens
  std::int32_t global_question, global_candidate, global_sentence, global_paragraph;  // of global tokens
  bool begins_with_cls;
};

// Types as written by the preparations (schemas of the tasks). If global tokens have no types, all except the copies of long
// tokens count as sentences.
constexpr TokenTypes kTypes[] = {
    {"wikihop", 3, 4, 5, 6, 0, 7, false},
    {"hotpotqa", 3, kNone, kNone, kNone, kNone, kNone, true},
    {"squad", 0, kNone, kNone, kNone, kNone, kNone, true},
    {"glue", 0, kNone, kNone, kNone, kNone, kNone, true},
};

const TokenTypes& types_of(const std::string& task) {
  static constexpr TokenTypes kOthers{"", kNone, kNone, kNone, kNone, kNone, kNone, true};
  const auto* const own =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.task == task; });
  return own == std::end(kTypes) ? kOthers : *own;
}

// The properties of a token that determine its groups.
struct Token {
  bool first = false;  // of its example and kind
  std::int32_t type = kNone, id = kNone;
};

// One kind of tokens of a batch.
struct Tokens {
  const std::vector<std::int64_t>& offsets;     // [B+1]
  const std::vector<std::int32_t>&ids, &types;  // [tokens]; types may be empty
};

template <typename IsIn>
std::vector<std::uint8_t> bits_of(const Tokens& tokens, const std::vector<QueryGroup>& groups, const IsIn& is_in) {
  const auto& [offsets, ids, types] = tokens;
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(offsets.back()));
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    for (std::int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Token token{i == offsets[b], types.empty() ? kNone : types[at], ids[at]};
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (groups[g] == QueryGroup::all || is_in(groups[g], token)) bits[at] |= static_cast<std::uint8_t>(1u << g);
      }
    }
  }
  return bits;
}

}  // namespace

const std::vector<std::string>& query_group_names() {
  static const std::vector<std::string> kNames{
      "all", "cls", "question", "candidate", "sentence_globals", "paragraph_globals"};
  return kNames;
}

std::vector<QueryGroup> chosen_groups(const std::vector<std::string>& names) {
  const std::vector<std::string>& known = query_group_names();
  std::vector<QueryGroup> groups;
  for (const std::string& name : names.empty() ? known : names) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      std::string list;
      for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
      fail_usage("etc analyze", "--groups: expected query groups of {}, got {}", list, name);
    }
    const auto group = static_cast<QueryGroup>(at - known.begin());
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

TaskTokens TaskTokens::of(const data::DatasetInfo& info) {
  TaskTokens tokens{info.task};
  const Json ids = info.preprocess_config.value("special_ids", Json::object());
  // Only hotpotqa's paragraphs have an id of their own; in other tasks every global token except copies is a sentence.
  if (!ids.contains("paragraph")) return tokens;
  tokens.question_id = ids.value("question", kNone);
  tokens.sentence_id = ids.value("sentence", kNone);
  tokens.paragraph_id = ids.value("paragraph", kNone);
  return tokens;
}

std::vector<std::uint8_t> groups_of_long(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                         const EncoderInput& input) {
  const TokenTypes& types = types_of(task.task);
  return bits_of({input.long_offsets, input.token_ids, input.segment_ids}, groups,
                 [&](QueryGroup group, const Token& token) {
                   const bool cls = types.begins_with_cls && token.first;
                   if (group == QueryGroup::cls) return cls;
                   if (group == QueryGroup::question)
                     return types.question != kNone && token.type == types.question && !cls;
                   return group == QueryGroup::candidate && types.candidate != kNone && token.type == types.candidate;
                 });
}

std::vector<std::uint8_t> groups_of_global(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                           const EncoderInput& input) {
  const TokenTypes& types = types_of(task.task);
  const bool typed = types.global_sentence != kNone && !input.global_segment_ids.empty();
  const bool known = typed || task.sentence_id != kNone;  // whether their kind is known
  return bits_of({input.global_offsets, input.global_token_ids, input.global_segment_ids}, groups,
                 [&](QueryGroup group, const Token& token) {
                   const bool cls = types.begins_with_cls && token.first;
                   const auto is = [&](std::int32_t type, std::int32_t id) {
                     return typed ? type != kNone && token.type == type : id != kNone && token.id == id;
                   };
                   switch (group) {
                     case QueryGroup::cls:
                       return cls;
                     case QueryGroup::question:
                       return is(types.global_question, task.question_id);
                     case QueryGroup::candidate:
                       return is(types.global_candidate, kNone);
                     case QueryGroup::sentence_globals:
                       return known ? is(types.global_sentence, task.sentence_id) : !cls;
                     default:
                       return is(types.global_paragraph, task.paragraph_id);
                   }
                 });
}

}  // namespace etc::analyze
