#include "tests/tasks/pretrain/examples.h"

#include "data/dataset.h"
#include "data/dataset_info.h"
#include "etc_core/base/json.h"
#include "etc_core/base/random.h"
#include "tasks/pretrain/pretrain_task.h"
#include "tasks/pretrain/schema.h"
#include "tests/support/small_config.h"

namespace etc::test {

namespace {

using Numbers = std::vector<std::int64_t>;

// Draw number `index` of an example, below `limit`.
std::int64_t draw(std::int64_t ordinal, std::uint32_t index, std::int64_t limit) {
  return philox({index, 0, 0, 0}, static_cast<std::uint64_t>(ordinal) + 77)[0] % static_cast<std::uint32_t>(limit);
}

std::int64_t word(std::int64_t number) {
  return kFirstWord + number % (kPretrainVocabulary - kFirstWord);
}

data::LoadedExample loaded(std::int64_t ordinal, const std::string& id, Numbers ids, Numbers kinds) {
  data::LoadedExample example;
  example.index = example.sample_ordinal = ordinal;
  const auto length = std::ssize(ids);
  example.features = {{"id", id},
                      {"record_index", ordinal},
                      {"long_token_ids", std::move(ids)},
                      {"piece_kinds", std::move(kinds)},
                      {"first_segment_length", std::int64_t{length}},
                      {"next_sentence_label", std::int64_t{-1}},
                      {"masked_positions", Numbers()},
                      {"masked_input_ids", Numbers()},
                      {"sentence_lengths", Numbers()},
                      {"cpc_sentences", Numbers()}};
  return example;
}

}  // namespace

std::string pretrain_vocabulary() {
  std::string text = vocabulary_entries({"[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[unused0]"});
  for (std::int64_t i = kFirstWord; i < kPretrainVocabulary; ++i) text += "w" + std::to_string(i) + "\n";
  return text;
}

data::LoadedExample pair_example(std::int64_t ordinal) {
  const std::int64_t a = 3 + draw(ordinal, 0, 5), b = 3 + draw(ordinal, 1, 4), start = draw(ordinal, 2, 50);
  const std::int64_t random = draw(ordinal, 3, 2);
  Numbers ids = {kCls}, kinds = {pretrain::kSpecial};
  for (std::int64_t i = 0; i < a; ++i) ids.push_back(word(start + i));
  ids.push_back(kSep);
  for (std::int64_t i = 0; i < b; ++i) ids.push_back(word(start + a + i + (random == 1 ? 23 : 0)));
  ids.push_back(kSep);
  kinds.resize(ids.size(), pretrain::kBegins);
  kinds[static_cast<std::size_t>(a + 1)] = kinds.back() = pretrain::kSpecial;
  data::LoadedExample example = loaded(ordinal, "pair_" + std::to_string(ordinal), ids, kinds);
  example.features["first_segment_length"] = a + 2;
  example.features["next_sentence_label"] = random;
  const std::int64_t in_a = 1 + draw(ordinal, 4, a), in_b = a + 2 + draw(ordinal, 5, b);
  example.features["masked_positions"] = Numbers{in_a, in_b};
  example.features["masked_input_ids"] = Numbers{kMask, draw(ordinal, 6, 5) == 0 ? word(ordinal) : kMask};
  return example;
}

data::LoadedExample sentences_example(std::int64_t ordinal) {
  const std::int64_t sentences = 4 + draw(ordinal, 0, 3);
  Numbers ids = {kCls}, kinds = {pretrain::kSpecial}, lengths;
  for (std::int64_t s = 0; s < sentences; ++s) {
    const auto at = static_cast<std::uint32_t>(10 + 10 * s);
    lengths.push_back(2 + draw(ordinal, at, 4));
    const std::int64_t start = draw(ordinal, 1, 50) + 7 * s;
    for (std::int64_t i = 0; i < lengths.back(); ++i) ids.push_back(word(start + i));
  }
  kinds.resize(ids.size(), pretrain::kBegins);
  data::LoadedExample example = loaded(ordinal, "text_" + std::to_string(ordinal), ids, kinds);
  example.features["sentence_lengths"] = lengths;
  const std::int64_t hidden = draw(ordinal, 2, sentences);
  example.features["cpc_sentences"] = Numbers{hidden};
  // The first piece of a sentence that is not hidden.
  const std::int64_t seen = (hidden + 1) % sentences;
  std::int64_t position = 1;
  for (std::int64_t s = 0; s < seen; ++s) position += lengths[static_cast<std::size_t>(s)];
  example.features["masked_positions"] = Numbers{position};
  example.features["masked_input_ids"] = Numbers{kMask};
  return example;
}

data::LoadedExample without_masks(data::LoadedExample example) {
  for (const char* feature : {"masked_positions", "masked_input_ids", "cpc_sentences"}) {
    example.features[feature] = Numbers();
  }
  return example;
}

void write_pretrain_dataset(const std::filesystem::path& path, data::LoadedExample (*make)(std::int64_t),
                            std::int64_t first, std::int64_t count, bool masks) {
  data::DatasetInfo info;
  info.task = "pretrain";
  info.split = "train";
  info.vocab_sha256 = tokenizer_of(pretrain_vocabulary())->vocab_sha256();
  info.preprocess_config = masks ? Json::object() : Json{{"masked_lm_prob", 0.3}};
  info.labelled = true;
  data::DatasetWriter writer(path, pretrain::schema(), info);
  for (std::int64_t i = first; i < first + count; ++i) {
    writer.append((masks ? make(i) : without_masks(make(i))).features);
  }
  writer.finish({}, count, 0, 0);
}

DenseConfig pretrain_dense() {
  DenseConfig config;
  config.vocab_size = kPretrainVocabulary;
  config.segment_vocab_size = 2;
  config.hidden_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.intermediate_size = 32;
  config.max_absolute_position_embeddings = 64;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
  return config;
}

EtcConfig pretrain_etc() {
  EtcConfig config = small_config({});
  config.use_hard_g2l_mask = true;
  return config;
}

std::unique_ptr<Task> pretrain_task(const Json& keys, const EncoderConfig& model) {
  Json section = {{"name", "pretrain"}};
  section.update(pretrain::task_kind().keys.defaults());
  section.update(keys);
  auto task = pretrain::task_kind().make(section, model);
  static const std::shared_ptr<const data::Tokenizer> vocabulary = tokenizer_of(pretrain_vocabulary());
  task->use_vocabulary(vocabulary);
  return task;
}

}  // namespace etc::test
