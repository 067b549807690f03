// A folder, a small vocabulary, and texts prepared in it.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "etc_core/base/files.h"
#include "tasks/prepare/run.h"
#include "tasks/pretrain/prepare.h"
#include "tasks/pretrain/schema.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

namespace etc::test {

using Numbers = std::vector<std::int64_t>;

// Special pieces, the letters a … z as words and inside words, and a full stop.
inline std::string letter_vocabulary() {
  std::string lines = "[PAD]\n[unused0]\n[unused1]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n";
  for (char c = 'a'; c <= 'z'; ++c) lines += std::string(1, c) + "\n##" + c + "\n";
  return lines;
}

// One feature's numbers of an example.
inline const Numbers& numbers_of(const data::Example& example, const std::string& name) {
  return std::get<Numbers>(example.at(name));
}
inline std::int64_t number_of(const data::Example& example, const std::string& name) {
  return std::get<std::int64_t>(example.at(name));
}

struct PretrainScene {
  TemporaryFolder folder;
  Json settings = Json::object();  // those that are not the default
  prepare::Counts counts;          // of the last run

  PretrainScene() { write("vocab.txt", letter_vocabulary()); }

  void write(const std::string& name, const std::string& bytes) const { write_file(folder / name, bytes); }
  std::string bytes(const std::string& name) const { return read_file(folder / name); }

  std::unique_ptr<prepare::Preparation> make() const {
    const prepare::PreparationKind& kind = pretrain::preparation_kind();
    const Json all = with_overrides(kind, kind.settings.defaults(), settings, "test");
    return kind.make(all, folder / "vocab.txt", prepare::Labels::required);
  }

  void run(const std::vector<std::string>& inputs = {"in.txt"}, const std::string& output = "out.h5") {
    prepare::RunOptions options;
    for (const std::string& input : inputs) options.inputs.push_back(folder / input);
    options.output = folder / output;
    options.report = folder / (output + ".rejects.jsonl");
    options.split = "train";
    counts = prepare::run(*make(), options);
  }

  // As the reader gives them, with the settings of their preparation.
  std::vector<data::Example> examples_with_settings(const std::string& output = "out.h5") const {
    const data::DatasetReader reader({folder / output}, pretrain::schema());
    std::vector<data::Example> all;
    for (std::int64_t i = 0; i < reader.size(); ++i) all.push_back(reader.read(i));
    return all;
  }
  std::vector<data::Example> examples(const std::string& output = "out.h5") const {
    std::vector<data::Example> all = examples_with_settings(output);
    for (data::Example& example : all) example.erase(pretrain::kSettings);
    return all;
  }

  // Prepares this text.
  std::vector<data::Example> prepared(const std::string& text) {
    write("in.txt", text);
    run();
    return examples();
  }

  std::vector<data::Fault> report(const std::string& output = "out.h5") const {
    std::istringstream lines(bytes(output + ".rejects.jsonl"));
    std::vector<data::Fault> faults;
    for (std::string line; std::getline(lines, line);) faults.push_back(prepare::fault_of(parse_json(line, "report")));
    return faults;
  }
};

// Checks the invariants of every example (pretraining 6, invariants 2 and 3). special: ids of [CLS], [SEP], [MASK].
inline void check_example(const data::Example& example, std::int64_t most, std::int64_t vocab_size,
                          const Numbers& special) {
  const Numbers &ids = numbers_of(example, "long_token_ids"), &kinds = numbers_of(example, "piece_kinds");
  const Numbers &positions = numbers_of(example, "masked_positions"), &shown = numbers_of(example, "masked_input_ids");
  const Numbers &sentences = numbers_of(example, "sentence_lengths"), &hidden = numbers_of(example, "cpc_sentences");
  const std::int64_t n = std::ssize(ids), first = number_of(example, "first_segment_length");
  const std::int64_t next = number_of(example, "next_sentence_label");
  REQUIRE(n >= 2);
  CHECK(n <= most);
  CHECK(kinds.size() == ids.size());
  CHECK(ids[0] == special[0]);
  CHECK(std::count(ids.begin(), ids.end(), special[0]) == 1);
  for (const std::int64_t id : ids) CHECK((id >= 0 && id < vocab_size));
  const std::int64_t ends = std::count(ids.begin(), ids.end(), special[1]);
  if (!sentences.empty()) {
    CHECK(ends == 0);
    std::int64_t sum = 1;
    for (const std::int64_t length : sentences) sum += length;
    CHECK(sum == n);
  } else {
    CHECK(ends == (next < 0 ? 1 : 2));
    CHECK(ids.back() == special[1]);
    CHECK((next < 0 ? first == n : first >= 3 && first <= n - 2));
    CHECK(ids.at(static_cast<std::size_t>(first) - 1) == special[1]);
  }
  REQUIRE(positions.size() == shown.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    CHECK((i == 0 || positions[i - 1] < positions[i]));
    CHECK(kinds.at(static_cast<std::size_t>(positions[i])) != pretrain::kSpecial);
    CHECK((shown[i] >= 0 && shown[i] < vocab_size));
  }
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    CHECK((i == 0 || hidden[i - 1] < hidden[i]));
    CHECK((hidden[i] >= 0 && hidden[i] < std::ssize(sentences)));
  }
  CHECK((hidden.size() < sentences.size() || sentences.empty()));
}

}  // namespace etc::test
