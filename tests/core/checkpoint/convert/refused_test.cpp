// Models with BERT's names that compute something else: refused because of a configuration key, or because of tensors
// that would be lost.

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/bert/bert_names.h"
#include "etc_core/checkpoint/convert/bert/lift.h"
#include "etc_core/checkpoint/convert/dense/foreign_encoder.h"
#include "etc_core/checkpoint/convert/memory_source.h"
#include "etc_core/checkpoint/convert/model_type.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/python.h"

using namespace etc;
using namespace etc::convert;
using Catch::Contains;
using test::HubBert;

namespace {

// A BERT's tensors in memory, and further tensors of a test.
MemorySource source_of(const HubBert& hub, const std::vector<MemoryTensor>& more = {}) {
  std::vector<MemoryTensor> tensors = more;
  for (const auto& [name, values] : hub.tensors) tensors.push_back({name, values.shape(), "float32", values.data()});
  return {tensors, "stored"};
}

// The error message of a conversion as dense; "" if it succeeds.
std::string dense_message(const std::string& family, const Json& json, const TensorSource& source,
                          ConversionReport* report = nullptr) {
  try {
    ParameterSet parameters;
    const auto done = read_foreign(source, foreign_encoder(family, json, "config.json", source), true, parameters);
    if (report != nullptr) *report = done;
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// The error message of lifting; "" if it succeeds.
std::string lift_message(const BertConfig& bert, const TensorSource& source, bool exact,
                         ConversionReport* report = nullptr) {
  try {
    ParameterSet parameters;
    LiftOptions options;
    options.exact = exact;
    const auto done =
        lift_bert(source, bert, etc_config_for(bert, BertKind::bert, exact), nullptr, options, parameters);
    if (report != nullptr) *report = done;
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string why_of(const ConversionReport& report, const std::string& name) {
  for (const auto& one : report.left_out) {
    if (one.name == name) return one.why;
  }
  return "not left out";
}

Json changed(Json json, const Json& changes) {
  json.update(changes);
  return json;
}

}  // namespace

TEST_CASE("a configuration that says its model computes something else is refused by that key", "[convert]") {
  const HubBert hub(test::small_bert());
  const MemorySource source = source_of(hub);
  const Json plain = test::small_bert_json();
  CHECK(dense_message("bert", plain, source).empty());
  for (const char* key : {"is_decoder", "add_cross_attention", "rescale_embeddings"}) {
    for (const std::string family : {"bert", "roberta", "nezha"}) {
      CAPTURE(key, family);
      const Json json = changed(plain, {{"model_type", family}, {key, true}});
      CHECK_THAT(dense_message(family, json, source),
                 Contains(std::string("config.json: ") + key + ": expected false, got true ("));
      CHECK_THROWS_AS(foreign_encoder(family, json, "config.json", source), UsageError);
    }
    CHECK(dense_message("bert", changed(plain, {{key, false}}), source).empty());
  }
  CHECK_THAT(dense_message("bert", changed(plain, {{"is_decoder", 1}}), source),
             Contains("is_decoder: expected true or false, got 1"));
  CHECK_THAT(dense_message("bert", changed(plain, {{"model_type", "electra"}, {"embedding_size", 4}}), source),
             Contains("embedding_size: expected hidden_size, 8, got 4"));
  CHECK(dense_message("bert", changed(plain, {{"model_type", "electra"}, {"embedding_size", 8}}), source).empty());
}

TEST_CASE("a configuration of another kind of model is refused, naming the option that reads it", "[convert]") {
  const Json plain = test::small_bert_json();
  const auto message = [&](const std::string& family, const Json& type) -> std::string {
    try {
      require_model_type(changed(plain, {{"model_type", type}}), "config.json", family);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  for (const char* type : {"bert", "electra", "big_bird"}) CHECK(message("bert", type).empty());
  for (const char* type : {"roberta", "xlm-roberta", "camembert"}) {
    CHECK(message("roberta", type).empty());
    CHECK_THAT(message("bert", type), Contains(std::string(type) + "\" (--from roberta)"));
  }
  CHECK_THAT(message("roberta", "bert"),
             Contains("config.json: model_type: expected \"roberta\", \"xlm-roberta\" or \"camembert\", got \"bert\" "
                      "(--from bert)"));
  CHECK_THAT(message("bert", "nezha"), Contains("(--from nezha --as dense)"));
  for (const Json& type : {Json("longformer"), Json("ernie"), Json(nullptr), Json(3)}) {
    CHECK_THAT(message("bert", type), Contains("got " + json_line(type) + " (no --from reads it"));
    CHECK_THAT(message("roberta", type), Contains("got " + json_line(type) + " (no --from reads it"));
  }
  for (const std::string& family : foreign_families()) CHECK_NOTHROW(require_model_type(plain, "c", family));  // none
  CHECK_THROWS_WITH(require_model_type(Json::array(), "c", "bert"), Contains("c: expected an object"));
}

TEST_CASE("RoBERTa's positions begin behind its padding id", "[convert]") {
  const HubBert hub(test::small_bert(), "roberta.");
  const MemorySource source = source_of(hub);
  const Json plain = changed(test::small_bert_json(), {{"model_type", "roberta"}});
  for (const std::int64_t padding : {0, 1, 4}) {
    CAPTURE(padding);
    ParameterSet parameters;
    const auto foreign = foreign_encoder("roberta", changed(plain, {{"pad_token_id", padding}}), "c", source);
    read_foreign(source, foreign, false, parameters);
    const Tensor& rows = parameters.at("bert/embeddings/position_embeddings").value;
    REQUIRE(rows.shape() == std::vector<std::int64_t>{7 - padding - 1, 8});
    CHECK(rows.data()[3] == hub.at("roberta.embeddings.position_embeddings.weight", (padding + 1) * 8 + 3));
  }
  CHECK_THAT(dense_message("roberta", changed(plain, {{"pad_token_id", 6}}), source),
             Contains("max_position_embeddings: expected more than pad_token_id + 1 = 7, got 7"));
  for (const Json& padding : {Json(-1), Json(nullptr), Json("1"), Json(1 << 25)}) {
    CHECK_THAT(dense_message("roberta", changed(plain, {{"pad_token_id", padding}}), source),
               Contains("pad_token_id: expected 0 … 16777216, got " + json_line(padding)));
    const Json bert = changed(plain, {{"model_type", "bert"}, {"pad_token_id", padding}});  // ignored for BERT
    CHECK(dense_message("bert", bert, source).empty());
  }
}

TEST_CASE("a BigBird is a BERT up to the length from which it reads with a pattern of blocks, and that is said",
          "[convert]") {
  const Json plain = changed(test::small_bert_json(), {{"model_type", "big_bird"}, {"max_position_embeddings", 4096}});
  const auto note = [&](const Json& changes) {
    return block_sparse_note(bert_config_from_json(changed(plain, changes), "c"));
  };
  CHECK_THAT(note(Json::object()), Contains("attention_type is block_sparse there") && Contains("up to 704 tokens"));
  CHECK_THAT(note({{"block_size", 16}, {"num_random_blocks", 2}}), Contains("up to 144 tokens"));
  CHECK(note({{"attention_type", "original_full"}}).empty());
  CHECK(note({{"max_position_embeddings", 704}}).empty());
  CHECK(note({{"model_type", "bert"}}).empty());
  CHECK_THAT(note({{"model_type", "bert"}, {"attention_type", "block_sparse"}}), Contains("704"));
}

TEST_CASE("tensors of the encoder that no parameter takes are an error, not left out", "[convert]") {
  const BertConfig bert = test::small_bert();
  const Json json = test::small_bert_json();
  const HubBert hub(bert);
  const std::vector<float> numbers(64);
  const auto refuses = [&](const std::string& name, std::vector<std::int64_t> shape) {
    CAPTURE(name);
    const MemorySource source = source_of(hub, {{name, std::move(shape), "float32", numbers.data()}});
    const auto named = Contains("stored: 1 unmatched: encoder variables without a parameter: " + name + " F32 [");
    CHECK_THAT(dense_message("bert", json, source), named);
    for (const bool exact : {false, true}) CHECK_THAT(lift_message(bert, source, exact), named);
  };
  refuses("bert.embeddings.task_type_embeddings.weight", {3, 8});
  refuses("bert.encoder.layer.0.attention.self.query.lora_A", {2, 8});
  refuses("bert.encoder.layer.1.attention.self.distance_embedding.weight", {4, 4});
  refuses("bert.encoder.layer.1.crossattention.self.key.weight", {8, 8});
  refuses("bert.encoder.layer.1.attention.self.key_global.bias", {8});
  refuses("bert.encoder.layer.2.output.dense.bias", {8});
  refuses("bert.encoder.LayerNorm.weight", {8});
  refuses("bert.embeddings_project.weight", {8, 8});
  refuses("bert/encoder/layer_0/adapter/kernel", {8, 8});

  // One layer too many: the message names the first few tensors, then the number of the others.
  const Json few = changed(json, {{"num_hidden_layers", 1}});
  const std::string message = dense_message("bert", few, source_of(hub));
  CHECK_THAT(message, Contains("stored: 16 unmatched: ") &&
                          Contains("bert.encoder.layer.1.attention.output.LayerNorm.bias") &&
                          Contains(" and 12 more (more layers than the configuration says"));
  CHECK(lift_message(bert_config_from_json(few, "c"), source_of(hub), true) == message);
  // A renamed tensor is both missing and left over.
  HubBert renamed = hub;
  renamed.tensors["bert.encoder.layer.0.output.densely.bias"] =
      renamed.tensors["bert.encoder.layer.0.output.dense.bias"];
  renamed.tensors.erase("bert.encoder.layer.0.output.dense.bias");
  CHECK_THAT(dense_message("bert", json, source_of(renamed)),
             Contains("2 unmatched: bert/encoder/layer_0/output/dense/bias [8] absent; encoder variables without a "
                      "parameter: bert.encoder.layer.0.output.densely.bias F32 [8] (more layers"));
}

TEST_CASE("heads, buffers and what an optimizer keeps stay left out", "[convert]") {
  const BertConfig bert = test::small_bert();
  const HubBert hub(bert);
  const std::vector<float> numbers(64);
  std::vector<MemoryTensor> more;
  const auto add = [&](const char* name, std::vector<std::int64_t> shape) {
    more.push_back({name, std::move(shape), "float32", numbers.data()});
  };
  add("bert.embeddings.position_ids", {1, 7});
  add("bert.embeddings.token_type_ids", {1, 7});
  add("classifier.weight", {2, 8});
  add("pooler.weight", {8, 8});
  add("other.encoder.layer.0.output.dense.weight", {8, 8});
  const MemorySource source = source_of(hub, more);
  ConversionReport dense, lifted;
  CHECK(dense_message("bert", test::small_bert_json(), source, &dense).empty());
  CHECK(lift_message(bert, source, true, &lifted).empty());
  for (const ConversionReport& report : {dense, lifted}) {
    CHECK_THAT(why_of(report, "bert.embeddings.position_ids"), Contains("the numbers 0, 1, 2"));
    CHECK_THAT(why_of(report, "bert.embeddings.token_type_ids"), Contains("zeros"));
    for (const char* name : {"classifier.weight", "pooler.weight", "other.encoder.layer.0.output.dense.weight"}) {
      CHECK(why_of(report, name) == kUnknownTensor);
    }
  }

  // TensorFlow's optimizers name their slots after the variable, each with its own suffix.
  std::vector<MemoryTensor> variables;
  const std::string kernel = "bert/encoder/layer_0/output/dense/kernel";
  for (const auto& [name, values] : hub.tensors) {
    const BertName known = bert_name(name);
    std::vector<std::int64_t> shape = values.shape();
    if (known.transposed) std::swap(shape[0], shape[1]);
    variables.push_back({known.name, shape, "float32", values.data()});
  }
  for (const char* slot : {"/adam_m", "/adam_v", "/Adam", "/Adam_1", "/LAMB", "/ExponentialMovingAverage"}) {
    variables.push_back(
        {kernel + slot, {10, 8}, "float32", hub.tensors.at("bert.encoder.layer.0.output.dense.weight").data()});
  }
  const MemorySource trained(variables, "stored");
  CHECK(dense_message("bert", test::small_bert_json(), trained, &dense).empty());
  CHECK(lift_message(bert, trained, true, &lifted).empty());
  for (const char* slot : {"/adam_m", "/Adam_1", "/LAMB", "/ExponentialMovingAverage"}) {
    CHECK(why_of(dense, kernel + slot) == kOptimiserSlot);
    CHECK(why_of(lifted, kernel + slot) == kOptimiserSlot);
  }
}

TEST_CASE("weights of a type that is not read are refused, naming the types that are", "[convert]") {
  const BertConfig bert = test::small_bert();
  HubBert hub(bert);
  const std::string name = "bert.encoder.layer.0.output.dense.bias";
  const std::vector<double> numbers(8);
  hub.tensors.erase(name);
  for (const auto& [type, stored] : {std::pair{"float64", "F64"}, {"int64", "I64"}}) {
    const MemorySource source = source_of(hub, {{name, {8}, type, numbers.data()}});
    const std::string message =
        fmt::format("stored: 1 unmatched: {}: expected F32, F16 or BF16 [8], got {} [8]", name, stored);
    CHECK(dense_message("bert", test::small_bert_json(), source) == message);
    CHECK(lift_message(bert, source, true) == message);
  }
}

namespace {

// Models of the library that look like BERT by their tensors.
constexpr const char* kMakeRefused = R"(
import sys
import torch
import transformers as t
folder = sys.argv[1]
sizes = dict(vocab_size=30, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=10,
             max_position_embeddings=20)
models = dict(
    is_decoder=t.BertModel(t.BertConfig(is_decoder=True, **sizes)),
    cross=t.BertModel(t.BertConfig(is_decoder=True, add_cross_attention=True, **sizes)),
    relative=t.BertModel(t.BertConfig(position_embedding_type='relative_key', **sizes)),
    ernie=t.ErnieModel(t.ErnieConfig(use_task_id=True, **sizes)),
    longformer=t.LongformerModel(t.LongformerConfig(attention_window=4, **sizes)),
    roberta=t.RobertaModel(t.RobertaConfig(**sizes)),
    bert=t.BertModel(t.BertConfig(**sizes)),
    rescaled=t.BigBirdModel(t.BigBirdConfig(rescale_embeddings=True, **sizes)),
    narrow=t.ElectraModel(t.ElectraConfig(embedding_size=4, **sizes)))
for name, model in models.items(): model.save_pretrained(folder + '/' + name)
)";

}  // namespace

TEST_CASE("models of the library that compute something else are refused by their key", "[convert][slow]") {
  const char* const modules = "torch, safetensors, transformers";
  const auto python = test::python_with(modules);
  if (!python) return test::skip(std::string("no Python with ") + modules);
  const test::TemporaryFolder folder;
  test::write_file(folder / "make.py", kMakeRefused);
  REQUIRE(test::run_python(*python, (folder / "make.py").string() + " " + folder.path().string()) == 0);
  const auto message = [&](const std::string& family, const std::string& model) {
    const auto source = open_tensors(folder / model);
    return dense_message(family, read_json_file(folder / (model + "/config.json")), *source);
  };
  CHECK(message("bert", "bert").empty());
  CHECK(message("roberta", "roberta").empty());
  CHECK_THAT(message("bert", "is_decoder"), Contains("is_decoder: expected false"));
  CHECK_THAT(message("bert", "cross"), Contains("is_decoder: expected false"));
  CHECK_THAT(message("bert", "relative"), Contains("position_embedding_type: expected absolute"));
  CHECK_THAT(message("bert", "ernie"), Contains("model_type: ") && Contains("got \"ernie\""));
  CHECK_THAT(message("roberta", "longformer"), Contains("model_type: ") && Contains("got \"longformer\""));
  CHECK_THAT(message("bert", "roberta"), Contains("model_type: ") && Contains("(--from roberta)"));
  CHECK_THAT(message("roberta", "bert"), Contains("model_type: ") && Contains("(--from bert)"));
  CHECK_THAT(message("bert", "rescaled"), Contains("rescale_embeddings: expected false"));
  CHECK_THAT(message("bert", "narrow"), Contains("embedding_size: expected hidden_size, 8, got 4"));
}
