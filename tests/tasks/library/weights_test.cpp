// Encoders with weights held in memory by another program.
#include <filesystem>

#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/bert/dense_bert.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/encoder.h"
#include "tasks/library/longetc.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using Catch::Contains;

namespace {

// A folder of a random model, and its tensors read into memory.
struct Held {
  std::vector<std::vector<float>> numbers;
  longetc::Weights weights;

  Held(const std::filesystem::path& folder, const std::string& family) {
    weights.family = family;
    weights.config = json_text(read_json_file(folder / "config.json"));
    const TensorFileReader file(folder / "model.safetensors");
    for (const auto& [name, entry] : file.entries()) {
      numbers.emplace_back(static_cast<std::size_t>(entry.size()));
      file.read_floats(name, numbers.back().data());
      weights.arrays.push_back({name, entry.shape, "float32", nullptr});
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) weights.arrays[i].data = numbers[i].data();
  }
};

void write_random_model(const std::filesystem::path& folder, const std::string& preset) {
  ModelConfig config = model_preset(preset);
  config->vocab_size = 50;
  config->hidden_size = 32;
  config->num_hidden_layers = 2;
  config->num_attention_heads = 2;
  config->intermediate_size = 64;
  ParameterSet parameters;
  const auto encoder = config->make_encoder(parameters);
  parameters.initialize(3);
  std::filesystem::create_directories(folder);
  write_model(folder, {{"model", config->to_json()}}, parameters);
}

const std::vector<std::int32_t> kIds = {2, 17, 9, 30, 3, 2, 40, 3};
const std::vector<std::int64_t> kOffsets = {0, 5, 8};

longetc::Encoded encode(longetc::Model&& model) {
  return model.encode({kIds.data(), kOffsets.data(), 2}, longetc::States::long_states);
}

std::string message_of(const longetc::Weights& weights) {
  try {
    encode(longetc::Model(weights));
  } catch (const longetc::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("weights in memory give the states that their folder gives", "[library]") {
  const test::TemporaryFolder folder;
  const std::string vocabulary = (folder / "vocab.txt").string();
  test::write_file(vocabulary, "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  longetc::LoadOptions options;
  options.vocabulary = vocabulary;
  for (const std::string preset : {"tiny", "dense-small"}) {
    CAPTURE(preset);
    write_random_model(folder / preset, preset);
    const longetc::Encoded expected = encode(longetc::Model((folder / preset).string(), options));
    std::vector<std::string> families = {"etc"};
    if (preset == "dense-small") families.push_back("bert");
    for (const std::string& family : families) {
      CAPTURE(family);
      std::filesystem::path from = folder / preset;
      if (family == "bert") {
        from = folder / "bert";
        std::filesystem::create_directories(from);
        convert::write_bert(folder / preset, from);
      }
      const longetc::Encoded states = encode(longetc::Model(Held(from, family).weights));
      CHECK(states.offsets == kOffsets);
      REQUIRE(states.rows * states.columns == expected.rows * expected.columns);
      CHECK(std::equal(states.states.get(), states.states.get() + states.rows * states.columns, expected.states.get()));
    }
  }
}

TEST_CASE("texts of an encoder alone are cut into sentences by the splitter that is named", "[library]") {
  const test::TemporaryFolder folder;
  write_random_model(folder / "model", "tiny");
  test::write_file(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nold\nab\n.\n");
  const std::filesystem::path tables = folder / "tables";
  std::filesystem::create_directories(tables);
  test::write_file(tables / "abbrev_types.txt", "ab\n");
  test::write_file(tables / "ortho_context.tab", "old\t2\n");
  for (const char* empty : {"collocations.tab", "sent_starters.txt"}) test::write_file(tables / empty, "");
  longetc::LoadOptions options;
  options.vocabulary = (folder / "vocab.txt").string();
  const auto sentences = [&](const std::string& splitter) {
    options.splitter = splitter;
    longetc::Model model((folder / "model").string(), options);
    return model.encode({"Old Ab. Xerxes is old. Old."}, longetc::States::global_states).rows;
  };
  CHECK(sentences("") == 3);
  CHECK(sentences("punkt:" + tables.string()) == 2);  // "Ab." does not end a sentence
  CHECK_THROWS_WITH(sentences("punkt:" + (folder / "none").string()), Contains("abbrev_types.txt"));
  CHECK_THROWS_WITH(sentences("foo"), Contains("foo"));
}

TEST_CASE("weights and ids that cannot be meant are refused with the reason", "[library]") {
  const test::TemporaryFolder folder;
  write_random_model(folder / "model", "dense-small");
  const Held held(folder / "model", "etc");
  longetc::Weights fewer = held.weights, typed = held.weights, twice = held.weights, turned = held.weights,
                   family = held.weights, null = held.weights;
  const std::string first = fewer.arrays[0].name;
  fewer.arrays.erase(fewer.arrays.begin());
  CHECK_THAT(message_of(fewer), Contains("1 tensors unmatched: " + first) && Contains("absent"));
  typed.arrays[0].type = "float31";
  CHECK_THAT(message_of(typed), Contains("did you mean float32?"));
  twice.arrays.push_back(twice.arrays[0]);
  CHECK_THAT(message_of(twice), Contains("got it twice"));
  turned.arrays[0].shape.push_back(1);
  CHECK_THAT(message_of(turned), Contains("expected [") && Contains(first));
  null.arrays[0].data = nullptr;
  CHECK_THAT(message_of(null), Contains("got null"));
  family.family = "gpt";
  CHECK_THAT(message_of(family), Contains("family gpt: expected etc or one of bert"));

  longetc::Model model(held.weights);
  const auto refused = [&](std::vector<std::int32_t> ids, std::vector<std::int32_t> sentences) {
    const std::vector<std::int64_t> offsets = {0, static_cast<std::int64_t>(ids.size())};
    try {
      model.encode({ids.data(), offsets.data(), 1, sentences.data()}, longetc::States::mean);
    } catch (const longetc::Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK_THAT(refused({2, 99}, {0, 0}), Contains("99"));
  CHECK_THAT(refused({2, 3}, {0, 2}), Contains("text 0: sentence of token 1: expected -1, 0 or 1, got 2"));
  CHECK_THAT(refused({}, {}), Contains("expected ascending numbers"));
  CHECK_THROWS_WITH(model.encode({kIds.data(), kOffsets.data(), 2}, longetc::States::global_states),
                    Contains("no global tokens"));
  CHECK_THROWS_WITH(model.encode({"a"}, longetc::States::mean), Contains("expected token ids"));
  CHECK_THROWS_WITH(model.predict("{}"), Contains("without a task's head"));
}
