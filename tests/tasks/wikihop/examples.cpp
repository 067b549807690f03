#include "tests/tasks/wikihop/examples.h"

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

EtcConfig tiny_model() {
  EtcConfig config;
  config.vocab_size = 64;
  config.hidden_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 32;
  config.local_radius = 4;
  config.relative_pos_max_distance = 4;
  config.relative_vocab_size = 12;
  config.hidden_dropout_prob = 0;
  config.attention_probs_dropout_prob = 0;
  return config;
}

}  // namespace etc::test
