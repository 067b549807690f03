#include "tasks/analyze/query_groups.h"

#include <algorithm>
#include <initializer_list>
#include <span>

#include "data/dataset_info.h"
#include "etc_core/base/error.h"

namespace etc::analyze {

namespace {

// The first long tokens of an example, CLS, question and SEP, if nothing but their place tells them from the others.
enum class FirstPart { none, first_segment, to_first_sep };
// Global tokens that copy the first long tokens, in front of those of sentences or blocks.
enum class Copies { none, cls, first_part };

// The kinds of a task's tokens by type. kNone: the task has no such type.
constexpr std::int32_t kNone = -1;
struct TokenTypes {
  const char* task;
  bool begins_with_cls;
  std::int32_t question = kNone, candidate = kNone;  // of long tokens
  std::int32_t global_question = kNone, global_candidate = kNone, global_sentence = kNone, global_paragraph = kNone;
  FirstPart first_part = FirstPart::none;
  Copies copies = Copies::none;
};

// As written by the preparations (schemas of the tasks) and fed to the encoder.
constexpr TokenTypes kTypes[] = {
    {.task = "wikihop",
     .begins_with_cls = false,
     .question = 3,
     .candidate = 4,
     .global_question = 5,
     .global_candidate = 6,
     .global_sentence = 0,
     .global_paragraph = 7},
    {.task = "hotpotqa", .begins_with_cls = true, .question = 3, .copies = Copies::cls},
    {.task = "nq", .begins_with_cls = true, .first_part = FirstPart::to_first_sep, .copies = Copies::cls},
    {.task = "squad", .begins_with_cls = true, .first_part = FirstPart::first_segment, .copies = Copies::first_part},
    {.task = "glue", .begins_with_cls = true, .first_part = FirstPart::first_segment, .copies = Copies::cls},
    {.task = "pretrain", .begins_with_cls = true},
};

const TokenTypes& types_of(const std::string& task) {
  static constexpr TokenTypes kOthers{.task = "", .begins_with_cls = false};
  const auto* const own =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.task == task; });
  return own == std::end(kTypes) ? kOthers : *own;
}

// The number of tokens of each example's first part.
std::vector<std::int64_t> first_parts(const TaskTokens& task, const EncoderInput& input) {
  const FirstPart of = types_of(task.task).first_part;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(input.batch()));
  for (std::size_t b = 0; b < sizes.size() && of != FirstPart::none; ++b) {
    const auto tokens_of = [&](const std::vector<std::int32_t>& all) {
      return std::span(all).subspan(static_cast<std::size_t>(input.long_offsets[b]),
                                    static_cast<std::size_t>(input.long_offsets[b + 1] - input.long_offsets[b]));
    };
    if (of == FirstPart::first_segment) {
      const auto segments = tokens_of(input.segment_ids);
      sizes[b] = std::find_if(segments.begin(), segments.end(), [](auto id) { return id != 0; }) - segments.begin();
    } else {
      const auto ids = tokens_of(input.token_ids);
      const auto sep = std::find(ids.begin(), ids.end(), task.sep_id);
      if (sep != ids.end()) sizes[b] = sep - ids.begin() + 1;
    }
  }
  return sizes;
}

// One token of a batch.
struct Token {
  std::size_t example = 0, at = 0;  // in the batch
  std::int64_t place = 0;           // in the example
};

// kind_of: the group of a token beside `all`, or `all` if it is in no other.
template <typename KindOf>
std::vector<std::uint8_t> bits_of(const std::vector<std::int64_t>& offsets, const std::vector<QueryGroup>& groups,
                                  const KindOf& kind_of) {
  std::vector<std::uint8_t> bits(static_cast<std::size_t>(offsets.back()));
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    for (std::int64_t i = offsets[b]; i < offsets[b + 1]; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const QueryGroup kind = kind_of(Token{b, at, i - offsets[b]});
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (groups[g] == QueryGroup::all || groups[g] == kind) bits[at] |= static_cast<std::uint8_t>(1u << g);
      }
    }
  }
  return bits;
}

// The kind whose number (a type or an id) this is; numbers that are kNone belong to no kind.
struct NumberedKind {
  std::int32_t number;
  QueryGroup kind;
};
QueryGroup kind_of_number(std::int32_t number, std::initializer_list<NumberedKind> kinds) {
  for (const NumberedKind& own : kinds) {
    if (own.number != kNone && own.number == number) return own.kind;
  }
  return QueryGroup::all;
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
  const Json ids = info.preprocess_config.value("special_ids", Json::object());
  const auto id = [&](const char* name) { return ids.value(name, kNone); };
  return {info.task, id("question"), id("sentence"), id("paragraph"), id("sep")};
}

std::vector<std::uint8_t> groups_of_long(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                         const EncoderInput& input) {
  const TokenTypes& types = types_of(task.task);
  const std::vector<std::int64_t> first = first_parts(task, input);
  return bits_of(input.long_offsets, groups, [&](const Token& token) {
    if (types.begins_with_cls && token.place == 0) return QueryGroup::cls;
    if (token.place < first[token.example]) return QueryGroup::question;
    if (input.segment_ids.empty()) return QueryGroup::all;
    return kind_of_number(input.segment_ids[token.at],
                          {{types.question, QueryGroup::question}, {types.candidate, QueryGroup::candidate}});
  });
}

std::vector<std::uint8_t> groups_of_global(const TaskTokens& task, const std::vector<QueryGroup>& groups,
                                           const EncoderInput& input) {
  const TokenTypes& types = types_of(task.task);
  const std::vector<std::int64_t> first = first_parts(task, input);
  return bits_of(input.global_offsets, groups, [&](const Token& token) {
    if (types.global_sentence != kNone && !input.global_segment_ids.empty()) {
      return kind_of_number(input.global_segment_ids[token.at],
                            {{types.global_question, QueryGroup::question},
                             {types.global_candidate, QueryGroup::candidate},
                             {types.global_sentence, QueryGroup::sentence_globals},
                             {types.global_paragraph, QueryGroup::paragraph_globals}});
    }
    const bool cls = types.copies != Copies::none && token.place == 0;
    if (task.sentence_id != kNone) {
      // With fixed blocks (nq) the first global token, too, is that of a block.
      const QueryGroup kind =
          kind_of_number(input.global_token_ids[token.at], {{task.question_id, QueryGroup::question},
                                                            {task.sentence_id, QueryGroup::sentence_globals},
                                                            {task.paragraph_id, QueryGroup::paragraph_globals}});
      return kind == QueryGroup::all && cls ? QueryGroup::cls : kind;
    }
    if (cls) return QueryGroup::cls;
    const bool copied = types.copies == Copies::first_part && token.place < first[token.example];
    return copied ? QueryGroup::question : QueryGroup::sentence_globals;
  });
}

}  // namespace etc::analyze
