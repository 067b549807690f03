#include "tests/data/store/samples.h"

#include "data/dataset_info.h"
#include "etc_core/base/random.h"

namespace etc::test {

using data::Example;
using data::FeatureKind;
using data::StoredType;

const data::Schema& sample_schema() {
  static const data::Schema kSchema{"wikihop",
                                    {
                                        {"id", FeatureKind::string, StoredType::u8, "", {}, {}},
                                        {"record_index", FeatureKind::scalar, StoredType::i64, "", {}, {}},
                                        {"flags", FeatureKind::scalar, StoredType::u32, "", {}, {}},
                                        {"long_token_ids", FeatureKind::ragged, StoredType::i32, "long", {}, 0},
                                        {"long_token_type_ids", FeatureKind::ragged, StoredType::u8, "long", {}, 0},
                                        {"long_sentence_ids", FeatureKind::ragged, StoredType::i16, "long", {}, -1},
                                        {"global_token_ids", FeatureKind::ragged, StoredType::i32, "global", {}, 0},
                                        {"global_type_id", FeatureKind::ragged, StoredType::i8, "global", {}, 0},
                                        {"global_text", FeatureKind::strings, StoredType::u8, "global", {}, {}},
                                        {"label_id", FeatureKind::scalar, StoredType::i32, "", -1, {}},
                                        {"query", FeatureKind::string, StoredType::u8, "", {}, {}},
                                        {"candidates", FeatureKind::strings, StoredType::u8, "candidate", {}, {}},
                                        {"x_coords", FeatureKind::ragged, StoredType::f32, "vdom", {}, 0},
                                        {"weight", FeatureKind::scalar, StoredType::f32, "", {}, {}},
                                    }};
  return kSchema;
}

Example worked_example() {
  using Ids = std::vector<std::int64_t>;
  using Texts = std::vector<std::string>;
  return {
      {"id", std::string("WH_train_0")},
      {"record_index", std::int64_t{0}},
      {"flags", std::int64_t{0}},
      {"long_token_ids", Ids{20, 21, 22, 23, 24, 24, 25, 20, 26, 27, 28, 29, 21, 22}},
      {"long_token_type_ids", Ids{4, 4, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {"long_sentence_ids", Ids{0, 1, 1, 2, 3, 5, 5, 5, 6, 6, 8, 8, 8, 8}},
      {"global_token_ids", Ids{4, 4, 3, 3, 5, 1, 1, 5, 1}},
      {"global_type_id", Ids{6, 6, 5, 5, 7, 0, 0, 7, 0}},
      {"global_text", Texts{"", "", "", "", "", "oslo is norway", "it snows", "", "he left new york"}},
      {"label_id", std::int64_t{0}},
      {"query", std::string("country oslo")},
      {"candidates", Texts{"norway", "new york"}},
      {"x_coords", std::vector<float>{0.5f, -1.25f, 1e30f}},
      {"weight", 1.0f},
  };
}

namespace {

// Successive random numbers of one example.
class Draws {
 public:
  explicit Draws(std::int64_t example) : key_(mix_key(77, static_cast<std::uint64_t>(example))) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(philox({drawn_++, 0, 0, 0}, key_)[0]) % std::max<std::int64_t>(bound, 1);
  }
  std::vector<std::int64_t> list(std::int64_t size, std::int64_t lowest, std::int64_t bound) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < size; ++i) values.push_back(lowest + below(bound - lowest));
    return values;
  }
  std::string text() {
    static const std::vector<std::string> kParts{"a", "bc", "é", "漢", "😀", " ", ""};
    std::string result;
    for (std::int64_t i = below(6); i > 0; --i)
      result += kParts[static_cast<std::size_t>(below(static_cast<std::int64_t>(kParts.size())))];
    return result;
  }
  std::vector<std::string> texts(std::int64_t size) {
    std::vector<std::string> result;
    for (std::int64_t i = 0; i < size; ++i) result.push_back(text());
    return result;
  }

 private:
  std::uint64_t key_;
  std::uint32_t drawn_ = 0;
};

}  // namespace

Example sample_example(std::int64_t i, std::int64_t longest) {
  Draws draws(i);
  const std::int64_t long_length = draws.below(longest + 1), global_length = draws.below(longest / 3 + 1);
  std::vector<float> coordinates;
  for (std::int64_t v = draws.below(4); v > 0; --v) coordinates.push_back(static_cast<float>(draws.below(1000)) / 8);
  return {
      {"id", "WH_train_" + std::to_string(i)},
      {"record_index", i},
      {"flags", draws.below(2) == 0 ? std::int64_t{0} : std::int64_t{0xFFFFFFFF}},
      {"long_token_ids", draws.list(long_length, 0, 30522)},
      {"long_token_type_ids", draws.list(long_length, 0, 256)},
      {"long_sentence_ids", draws.list(long_length, -1, global_length)},
      {"global_token_ids", draws.list(global_length, 0, 30522)},
      {"global_type_id", draws.list(global_length, -128, 128)},
      {"global_text", draws.texts(global_length)},
      {"label_id", draws.below(5) - 1},
      {"query", draws.text()},
      {"candidates", draws.texts(draws.below(5))},
      {"x_coords", coordinates},
      {"weight", static_cast<float>(draws.below(100)) / 4},
  };
}

data::DatasetInfo sample_info() {
  data::DatasetInfo info;
  info.task = "wikihop";
  info.split = "train";
  info.vocab_sha256 = std::string(64, 'a');
  info.preprocess_config = {{"long_seq_len", 4096}, {"do_lower_case", true}, {"parity", "repaired"}};
  info.labelled = true;
  info.unicode_version = "15.0";
  return info;
}

data::Fault sample_fault(std::int64_t i) {
  return {"train.json",
          i,
          100 * i,
          "WH_train_" + std::to_string(i),
          "candidates[1]",
          "candidate_empty",
          i % 2 == 0 ? data::Severity::reject : data::Severity::drop,
          "candidate is empty after trimming: é"};
}

void write_examples(const std::filesystem::path& path, const std::vector<Example>& examples,
                    const std::vector<data::Fault>& faults, const data::DatasetInfo& info) {
  data::DatasetWriter writer(path, sample_schema(), info);
  for (const Example& example : examples) writer.append(example);
  for (const data::Fault& fault : faults) writer.add_fault(fault);
  const auto records = static_cast<std::int64_t>(examples.size()), rejected = static_cast<std::int64_t>(faults.size());
  writer.finish({{"train.json", 12345, std::string(64, 'b')}}, records + rejected, rejected, 0);
}

std::vector<Example> write_samples(const std::filesystem::path& path, std::int64_t examples, std::int64_t first,
                                   std::int64_t longest) {
  std::vector<Example> rows;
  for (std::int64_t i = 0; i < examples; ++i) rows.push_back(sample_example(first + i, longest));
  std::vector<data::Fault> faults;
  for (std::int64_t i = 0; i < examples / 4; ++i) faults.push_back(sample_fault(first + i));
  write_examples(path, rows, faults);
  return rows;
}

}  // namespace etc::test
