#include "tests/tasks/wikihop/examples.h"
#include "tests/support/small_config.h"

#include "data/dataset_info.h"
#include "data/text/sha256.h"
#include "etc_core/base/random.h"
#include "etc_core/nn/etc_config.h"
#include "tasks/wikihop/schema.h"

namespace etc::test {

data::LoadedExample worked_example(std::int64_t ordinal) {
  using Numbers = std::vector<std::int64_t>;
  data::LoadedExample loaded;
  loaded.index = loaded.sample_ordinal = ordinal;
  loaded.features = {
      {"id", "worked_" + std::to_string(ordinal)},
      {"record_index", ordinal},
      {"flags", std::int64_t{0}},
      // norway new york · country oslo · oslo is norway it snows · he left new york
      {"long_token_ids", Numbers{10, 11, 12, 13, 14, 14, 15, 10, 16, 17, 18, 19, 11, 12}},
      {"long_token_type_ids", Numbers{4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"long_sentence_ids", Numbers{0, 1, 1, 2, 3, 5, 5, 5, 6, 6, 8, 8, 8, 8}},
      {"long_paragraph_ids", Numbers{-1, -1, -1, -1, -1, 4, 4, 4, 4, 4, 7, 7, 7, 7}},
      {"long_paragraph_breakpoints", Numbers{1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1}},
      {"l2g_linked_ids", Numbers{0, 1, 1, -1, -1, -1, -1, 0, -1, -1, -1, -1, 1, 1}},
      {"global_token_ids", Numbers{4, 4, 3, 3, 5, 1, 1, 5, 1}},
      {"global_token_type_ids", Numbers{6, 6, 5, 5, 7, 0, 0, 7, 0}},
      {"global_paragraph_breakpoints", Numbers{1, 1, 0, 1, 0, 0, 1, 0, 1}},
      {"label_id", std::int64_t{0}},
      {"num_candidates", std::int64_t{2}},
      {"num_query_tokens", std::int64_t{2}},
      {"num_documents", std::int64_t{2}},
      {"query", std::string("country oslo")},
      {"answer", std::string("norway")},
      {"candidates", std::vector<std::string>{"norway", "new york"}},
      {"sentences_before", std::int64_t{3}},
      {"sentences_after", std::int64_t{3}},
      {"doc_tokens_before", std::int64_t{9}},
      {"doc_tokens_after", std::int64_t{9}},
  };
  return loaded;
}

data::LoadedExample readable_example(std::int64_t ordinal) {
  constexpr std::int64_t kCandidates = 4, kFirstCandidate = 10, kFirstFiller = 40, kFillers = 20;
  std::uint32_t drawn = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(philox({drawn++, 0, 0, 0}, static_cast<std::uint64_t>(ordinal))[0]) % bound;
  };
  const std::int64_t label = below(kCandidates);
  const std::int64_t fillers = 5 + below(12);
  const std::int64_t mention = below(fillers + 1);

  std::vector<std::int64_t> ids, types, sentences, paragraphs, breakpoints, links;
  const auto add = [&](std::int64_t id, std::int64_t type, std::int64_t sentence, std::int64_t paragraph, bool last,
                       std::int64_t link) {
    ids.push_back(id);
    types.push_back(type);
    sentences.push_back(sentence);
    paragraphs.push_back(paragraph);
    breakpoints.push_back(last ? 1 : 0);
    links.push_back(link);
  };
  // Globals: four candidates, one query token, a document, its sentence.
  for (std::int64_t c = 0; c < kCandidates; ++c) add(kFirstCandidate + c, 4, c, -1, true, c);
  add(30, 3, kCandidates, -1, true, -1);
  for (std::int64_t i = 0; i <= fillers; ++i) {
    const bool named = i == mention;
    add(named ? kFirstCandidate + label : kFirstFiller + below(kFillers), 1, kCandidates + 2, kCandidates + 1,
        i == fillers, named ? label : -1);
  }
  using Numbers = std::vector<std::int64_t>;
  data::LoadedExample loaded = worked_example(ordinal);
  data::Example& example = loaded.features;
  example["id"] = "readable_" + std::to_string(ordinal);
  example["long_token_ids"] = ids;
  example["long_token_type_ids"] = types;
  example["long_sentence_ids"] = sentences;
  example["long_paragraph_ids"] = paragraphs;
  example["long_paragraph_breakpoints"] = breakpoints;
  example["l2g_linked_ids"] = links;
  example["global_token_ids"] = Numbers{4, 4, 4, 4, 3, 5, 1};
  example["global_token_type_ids"] = Numbers{6, 6, 6, 6, 5, 7, 0};
  example["global_paragraph_breakpoints"] = Numbers{1, 1, 1, 1, 1, 0, 1};
  example["label_id"] = label;
  example["num_candidates"] = kCandidates;
  example["num_query_tokens"] = std::int64_t{1};
  example["num_documents"] = std::int64_t{1};
  example["candidates"] = std::vector<std::string>{"a", "b", "c", "d"};
  example["answer"] = std::string(1, static_cast<char>('a' + label));
  return loaded;
}

void write_readable_dataset(const std::filesystem::path& path, std::int64_t first, std::int64_t count,
                            const std::string& vocabulary, const std::vector<data::MissingPart>& missing) {
  data::DatasetInfo info;
  info.task = "wikihop";
  info.split = "train";
  info.vocab_sha256 = data::sha256_hex(vocabulary);
  info.preprocess_config = Json::object();
  info.labelled = true;
  info.unicode_version = "15.0";
  info.missing = missing;
  data::DatasetWriter writer(path, wikihop::schema(), info);
  for (std::int64_t i = first; i < first + count; ++i) writer.append(readable_example(i).features);
  writer.finish({}, count, 0, 0);
}

EtcConfig tiny_model() {
  return small_config({.distance = 4, .labels = 12});
}

}  // namespace etc::test
