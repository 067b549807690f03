#include "etc_core/checkpoint/convert/bert/lift.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "etc_core/base/error.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/bert/bert_names.h"
#include "etc_core/checkpoint/tensor_file.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/checkpoint/convert/bert_model.h"
#include "tests/core/checkpoint/convert/samples.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/mutate.h"
#include "tests/support/numbers.h"
#include "tests/support/worst.h"

using namespace etc;
using namespace etc::convert;
using Catch::Contains;
using test::HubBert;
using test::small_bert;
namespace fs = std::filesystem;

namespace {

EtcConfig small_etc(const BertConfig& bert, bool exact = false) {
  EtcConfig config = etc_config_for(bert, BertKind::bert, exact);
  config.local_radius = 6;
  return config;
}

std::unique_ptr<TensorSource> source_of(const HubBert& hub, const test::TemporaryFolder& folder) {
  hub.write(folder / "model.safetensors");
  return open_tensors(folder / "model.safetensors");
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.size() == b.size() && std::equal(a.data(), a.data() + a.size(), b.data());
}

const std::string kLayers = "etc_document_bert/global_local_transformer_layers/";

}  // namespace

TEST_CASE("PyTorch names of BERT and RoBERTa mean the TensorFlow variables", "[convert]") {
  const std::map<std::string, std::string> names = {
      {"embeddings.word_embeddings.weight", "bert/embeddings/word_embeddings"},
      {"bert.embeddings.position_embeddings.weight", "bert/embeddings/position_embeddings"},
      {"roberta.embeddings.LayerNorm.weight", "bert/embeddings/LayerNorm/gamma"},
      {"bert.embeddings.LayerNorm.beta", "bert/embeddings/LayerNorm/beta"},
      {"bert.encoder.layer.11.attention.self.query.bias", "bert/encoder/layer_11/attention/self/query/bias"},
      {"encoder.layer.0.output.LayerNorm.gamma", "bert/encoder/layer_0/output/LayerNorm/gamma"},
      {"bert.encoder.layer.3.output.dense.weight", "bert/encoder/layer_3/output/dense/kernel"},
      {"bert.pooler.dense.weight", "bert/pooler/dense/kernel"},
      {"cls.predictions.transform.dense.weight", "cls/predictions/transform/dense/kernel"},
      {"cls.predictions.transform.LayerNorm.weight", "cls/predictions/transform/LayerNorm/gamma"},
      {"cls.predictions.bias", "cls/predictions/output_bias"},
      {"lm_head.dense.weight", "cls/predictions/transform/dense/kernel"},
      {"lm_head.layer_norm.bias", "cls/predictions/transform/LayerNorm/beta"},
      {"cls.seq_relationship.weight", "cls/seq_relationship/output_weights"},
      {"bert/encoder/layer_0/output/dense/kernel", "bert/encoder/layer_0/output/dense/kernel"},
      {"bert/encoder/layer_0/output/dense/kernel/adam_m", ""},
      {"global_step", ""},
      {"embeddings.position_ids", ""},
      {"cls.predictions.decoder.weight", ""},
      {"classifier.weight", ""},
      {"etc_document_bert/long_emb_layer_norm/gamma", ""}};
  for (const auto& [stored, name] : names) {
    CAPTURE(stored);
    REQUIRE(bert_name(stored).name == name);
    const bool kernel = name.ends_with("/kernel") && stored.find('/') == std::string::npos;
    REQUIRE(bert_name(stored).transposed == kernel);
  }
}

TEST_CASE("a lifted model takes every tensor from where the specification says", "[convert]") {
  const test::TemporaryFolder folder;
  const BertConfig bert = small_bert();
  HubBert hub(bert);
  hub.tensors["classifier.weight"] = Tensor::from({1, 2}, {1, 2}, Purpose::weights);
  const auto source = source_of(hub, folder);
  for (int flags = 0; flags < 16; ++flags) {
    CAPTURE(flags);
    EtcConfig config = small_etc(bert);
    config.share_feed_forward_params = (flags & 1) != 0;
    config.share_kv_projections = (flags & 2) != 0;
    config.share_qkv_projections = (flags & 4) != 0;
    config.share_att_output_projection = (flags & 8) != 0;
    ParameterSet parameters;
    const ConversionReport report = lift_bert(*source, bert, config, nullptr, {}, parameters);

    const auto value = [&](const std::string& name) { return parameters.at(name).value; };
    REQUIRE(equal(value("etc_document_bert/token_emb_lookup/embedding_table"),
                  hub.tensors.at("bert.embeddings.word_embeddings.weight")));
    const Tensor segments = value("etc_document_bert/segment_emb_lookup/embedding_table");
    for (std::int64_t i = 0; i < segments.size(); ++i) {
      REQUIRE(segments.data()[i] == hub.at("bert.embeddings.token_type_embeddings.weight", i % bert.hidden_size));
    }
    for (const auto& parameter : parameters.all()) {
      CAPTURE(parameter->name);
      const Tensor& tensor = parameter->value;
      if (parameter->name.find("/relative_") != std::string::npos) {
        REQUIRE(std::all_of(tensor.data(), tensor.data() + tensor.size(), [](float x) { return x == 0; }));
        continue;
      }
      const std::string from = lifted_from(parameter->name);
      if (from.empty()) continue;
      // The part of the PyTorch name that corresponds to the parameter's name, written down independently of the code.
      const std::map<std::string, std::string> parts = {
          {"_emb_layer_norm/", "embeddings.LayerNorm"},     {"/layer_norm_0/", "attention.output.LayerNorm"},
          {"/layer_norm_1/", "attention.output.LayerNorm"}, {"query_projection", "attention.self.query"},
          {"key_projection", "attention.self.key"},         {"value_projection", "attention.self.value"},
          {"output_projection", "attention.output.dense"},  {"dense_layers/layer_0", "intermediate.dense"},
          {"dense_layers/layer_1", "output.dense"},         {"/layer_norm/", "output.LayerNorm"}};
      const auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& one) {
        return parameter->name.find(one.first) != std::string::npos;
      });
      REQUIRE(part != parts.end());
      const char layer = parameter->name.find("layer_1/f") != std::string::npos ||
                                 parameter->name.find("att_layer_1/") != std::string::npos ||
                                 parameter->name.find("forward_layer_1/") != std::string::npos
                             ? '1'
                             : '0';
      const bool embedding = part->second.starts_with("embeddings");
      const bool bias = parameter->name.ends_with("/bias") || parameter->name.ends_with("/beta");
      const std::string stored = (embedding ? std::string("bert.") : std::string("bert.encoder.layer.") + layer + ".") +
                                 part->second + (bias ? ".bias" : ".weight");
      const Tensor& original = hub.tensors.at(stored);
      REQUIRE(original.size() == tensor.size());
      if (tensor.rank() == 1) {
        REQUIRE(equal(original, tensor));
      } else {
        for (std::int64_t i = 0; i < tensor.dim(0); ++i) {
          for (std::int64_t j = 0; j < tensor.dim(1); ++j) {
            REQUIRE(tensor.data()[i * tensor.dim(1) + j] == original.data()[j * tensor.dim(0) + i]);
          }
        }
      }
    }
    // Every parameter is copied or initialised; every source tensor is used or left out with a reason.
    std::set<std::string> named;
    for (const auto& one : report.copied) named.insert(one.name);
    for (const auto& one : report.initialised) REQUIRE(named.insert(one.name).second);
    REQUIRE(named.size() == parameters.all().size());
    std::map<std::string, std::string> reasons;
    for (const auto& one : report.left_out) reasons[one.name] = one.why;
    REQUIRE(reasons.size() == 4);
    REQUIRE(reasons.at("classifier.weight") == "unknown");
    REQUIRE_THAT(reasons.at("bert.pooler.dense.weight"), Contains("pooler"));
    REQUIRE_THAT(reasons.at("bert.embeddings.position_embeddings.weight"), Contains("--exact keeps them"));
    for (const auto& [name, tensor] : source->tensors()) {
      const bool used = std::any_of(report.copied.begin(), report.copied.end(),
                                    [&](const auto& one) { return one.from.starts_with(name); });
      REQUIRE(used != (reasons.count(name) == 1));
    }
  }
}

TEST_CASE("an exact lift fills the segment rows that BERT lacks with its row 0", "[convert]") {
  const test::TemporaryFolder folder;
  const BertConfig bert = small_bert();
  const HubBert hub(bert);
  EtcConfig config = small_etc(bert, true);
  config.segment_vocab_size = bert.type_vocab_size + 2;
  LiftOptions options;
  options.exact = true;
  ParameterSet parameters;
  lift_bert(*source_of(hub, folder), bert, config, nullptr, options, parameters);
  const Tensor segments = parameters.at("etc_document_bert/segment_emb_lookup/embedding_table").value;
  for (std::int64_t i = 0; i < segments.size(); ++i) {
    const std::int64_t row = i / bert.hidden_size, column = i % bert.hidden_size;
    const std::int64_t from = row < bert.type_vocab_size ? row : 0;
    REQUIRE(segments.data()[i] ==
            hub.at("bert.embeddings.token_type_embeddings.weight", from * bert.hidden_size + column));
  }
}

TEST_CASE("lifting twice gives the same bits, also of what is initialised", "[convert]") {
  const test::TemporaryFolder folder;
  const BertConfig bert = small_bert();
  const auto source = source_of(HubBert(bert), folder);
  LiftOptions options;
  options.normal_relative_tables = true;
  ParameterSet a, b, c;
  lift_bert(*source, bert, small_etc(bert), nullptr, options, a);
  lift_bert(*source, bert, small_etc(bert), nullptr, options, b);
  options.seed = 2;
  const ConversionReport report = lift_bert(*source, bert, small_etc(bert), nullptr, options, c);
  for (const auto& parameter : a.all()) REQUIRE(equal(parameter->value, b.at(parameter->name).value));
  const std::string table =
      kLayers + "fused_att_layer_1/fused_global_local_att/global_qkv_attention/relative_emb_table";
  REQUIRE(!equal(a.at(table).value, c.at(table).value));
  REQUIRE_THAT(report.text(), Contains("relative_emb_table [32, 2, 4] x2: normal, deviation 0.5"));
}

TEST_CASE("the mean position goes into every segment row on request", "[convert]") {
  const test::TemporaryFolder folder;
  const BertConfig bert = small_bert();
  const HubBert hub(bert);
  const auto source = source_of(hub, folder);
  for (const BertKind kind : {BertKind::bert, BertKind::roberta}) {
    LiftOptions options;
    options.kind = kind;
    options.position_mean = true;
    ParameterSet parameters;
    const ConversionReport report = lift_bert(*source, bert, small_etc(bert), nullptr, options, parameters);
    const Tensor segments = parameters.at("etc_document_bert/segment_emb_lookup/embedding_table").value;
    const std::int64_t first = kind == BertKind::roberta ? 2 : 0;
    for (std::int64_t i = 0; i < segments.size(); ++i) {
      const std::int64_t column = i % 8;
      double mean = 0;
      for (std::int64_t row = first; row < 7; ++row) {
        mean += hub.at("bert.embeddings.position_embeddings.weight", row * 8 + column) / static_cast<double>(7 - first);
      }
      const double expected = hub.at("bert.embeddings.token_type_embeddings.weight", column) + mean;
      REQUIRE(segments.data()[i] == Approx(expected).margin(1e-6));
    }
    REQUIRE(report.left_out.size() == 2);  // the pooler
  }
}

TEST_CASE("a lifted model computes BERT without positions, whatever its globals", "[convert]") {
  register_cpu_backend();
  const test::TemporaryFolder folder;
  BertConfig bert = small_bert();
  bert.type_vocab_size = 1;
  HubBert hub(bert);
  hub.tensors.at("bert.embeddings.position_embeddings.weight").zero();
  const auto source = source_of(hub, folder);
  for (const int mode : {0, 1, 2}) {
    CAPTURE(mode);
    bert.use_residual_attention = mode > 0;
    bert.use_running_mean = mode == 2;
    ParameterSet parameters;
    const EtcConfig config = small_etc(bert);
    EtcEncoder encoder(config, parameters);
    ParameterSet lifted;
    lift_bert(*source, bert, config, nullptr, {}, lifted);
    for (const auto& parameter : parameters.all()) parameter->value = lifted.at(parameter->name).value;
    test::BertInput input;
    input.batch = 1;
    input.length = 7;
    input.ids = {3, 1, 4, 1, 5, 9, 2};
    input.types.assign(7, 1);
    input.mask.assign(7, 1);
    EncoderInput etc = test::etc_input(input, config);
    etc.global_offsets = {0, 3};  // global tokens that long tokens do not attend to
    etc.global_token_ids = {7, 7, 8};
    etc.labels.l2g = Buffer<std::uint8_t>(7 * 3, Purpose::labels);
    std::fill(etc.labels.l2g.begin(), etc.labels.l2g.end(), sparse::kMasked);
    Tape tape(Recording::off);
    const Tensor states = encoder.forward(tape, etc, {}).long_states.value();

    const auto read = [&](const std::string& name) {
      for (const auto& [stored, tensor] : hub.tensors) {
        const BertName known = bert_name(stored);
        if (known.name != name) continue;
        std::vector<double> numbers(tensor.data(), tensor.data() + tensor.size());
        if (known.transposed) {
          for (std::int64_t i = 0; i < tensor.dim(1); ++i) {
            for (std::int64_t j = 0; j < tensor.dim(0); ++j) {
              numbers[static_cast<std::size_t>(i * tensor.dim(0) + j)] = tensor.data()[j * tensor.dim(1) + i];
            }
          }
        }
        return numbers;
      }
      return std::vector<double>();
    };
    const auto expected = test::reference_bert(bert, read, input.ids, std::vector<std::int32_t>(7, 0), false);
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (std::size_t j = 0; j < expected[i].size(); ++j) {
        test::keep_worst(worst, std::abs(expected[i][j] - states.data()[i * 8 + j]));
      }
    }
    CHECK(worst < 1e-5);
  }
}

TEST_CASE("a checkpoint or configuration that does not fit is refused, naming both sides", "[convert]") {
  const test::TemporaryFolder folder;
  const BertConfig bert = small_bert();
  const auto refuses = [&](const HubBert& hub, const EtcConfig& config, const std::string& message,
                           LiftOptions options = {}) {
    ParameterSet parameters;
    REQUIRE_THROWS_WITH(lift_bert(*source_of(hub, folder), bert, config, nullptr, options, parameters),
                        Contains(message));
  };
  const HubBert good(bert);
  const auto changed = [&](auto&& change) {
    EtcConfig config = small_etc(bert);
    change(config);
    return config;
  };
  refuses(good, changed([](EtcConfig& c) { c.hidden_size = 16; }),
          "hidden_size: expected 8 as in the checkpoint, got 16");
  refuses(good, changed([](EtcConfig& c) { c.num_hidden_layers = 3; }), "num_hidden_layers: expected 2");
  refuses(good, changed([](EtcConfig& c) { c.num_attention_heads = 4; }), "num_attention_heads: expected 2");
  refuses(good, changed([](EtcConfig& c) { c.intermediate_size = 11; }), "intermediate_size: expected 10");
  refuses(good, changed([](EtcConfig& c) { c.att_size_per_head = 3; }), "att_size_per_head: expected 8");
  refuses(good, changed([](EtcConfig& c) { c.embedding_size = 4; }), "embedding_size: expected 8");
  refuses(good, changed([](EtcConfig& c) { c.hidden_act = "relu"; }), "hidden_act: expected gelu");
  refuses(good, changed([](EtcConfig& c) { c.vocab_size = 13; }), "vocab_size: expected 12, got 13");
  LiftOptions exact;
  exact.exact = true;
  refuses(good, small_etc(bert), "max_absolute_position_embeddings: expected 7 as in the checkpoint, got 0", exact);

  HubBert hub(bert);
  hub.tensors.erase("bert.encoder.layer.1.output.dense.weight");
  hub.tensors["bert.encoder.layer.0.output.dense.bias"] = Tensor::from({1, 2}, {2}, Purpose::weights);
  refuses(hub, small_etc(bert),
          "2 unmatched: bert.encoder.layer.0.output.dense.bias: expected [8], got F32 [2]; "
          "bert/encoder/layer_1/output/dense/kernel [10, 8] absent");
  hub = HubBert(bert);
  hub.tensors["bert.embeddings.LayerNorm.gamma"] = hub.tensors.at("bert.embeddings.LayerNorm.weight");
  refuses(hub, small_etc(bert), "bert.embeddings.LayerNorm.gamma and bert.embeddings.LayerNorm.weight are the same");
  hub = HubBert(bert);
  hub.tensors["bert.pooler.dense.weight"] = Tensor::from({1, 2}, {2}, Purpose::weights);
  refuses(hub, small_etc(bert), "bert.pooler.dense.weight: expected a matrix, got F32 [2]");
  hub = HubBert(bert);
  hub.tensors.erase("bert.embeddings.position_embeddings.weight");
  LiftOptions mean;
  mean.position_mean = true;
  refuses(hub, small_etc(bert), "bert/embeddings/position_embeddings [7, 8] absent", mean);
  hub = HubBert(bert);
  hub.tensors.at("bert.embeddings.LayerNorm.weight").data()[3] = INFINITY;
  refuses(hub, small_etc(bert), "expected finite weights, got inf at element [3]");
}

TEST_CASE("configurations of BERT are read, and those that are none refused", "[convert]") {
  const auto parse = [](const std::string& text) { return bert_config_from_json(parse_json(text, "c"), "c"); };
  const std::string sizes =
      R"("vocab_size": 50265, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16)";
  const BertConfig large = parse("{" + sizes + R"(, "intermediate_size": 4096, "max_position_embeddings": 514,
      "type_vocab_size": 1, "layer_norm_eps": 1e-05, "model_type": "roberta", "hidden_act": "gelu"})");
  const EtcConfig etc = etc_config_for(large, BertKind::roberta, false);
  REQUIRE(etc.local_radius == 169);  // the preset of this size
  REQUIRE(etc.relative_vocab_size == 64);
  REQUIRE(etc.max_absolute_position_embeddings == 0);
  REQUIRE(etc_config_for(large, BertKind::roberta, true).max_absolute_position_embeddings == 512);
  REQUIRE(etc_config_for(large, BertKind::roberta, true).local_radius == 511);
  REQUIRE(!etc.use_residual_attention);
  REQUIRE(parse("{" + sizes + R"(, "use_running_mean": false})").use_residual_attention);
  REQUIRE(
      !parse("{" + sizes + R"(, "use_running_mean": true, "use_residual_attention": false})").use_residual_attention);
  // Only vocab_size is required; names of activations in any case, none is the identity (etc-core 6.3, 9.1).
  const BertConfig base = parse(R"({"vocab_size": 30522})");
  CHECK(base.hidden_size == 768);
  CHECK(base.num_hidden_layers == 12);
  CHECK(base.num_attention_heads == 12);
  CHECK(!base.says_residual);
  const auto activation = [&](const std::string& value) {
    return etc_config_for(parse("{" + sizes + R"(, "hidden_act": )" + value + "}"), BertKind::bert, false).hidden_act;
  };
  CHECK(activation(R"("GELU")") == "gelu");
  CHECK(activation(R"("ReLU")") == "relu");
  CHECK(activation(R"("")") == "linear");
  CHECK(activation("null") == "linear");
  REQUIRE_THROWS_WITH(parse("{}"), Contains("c: no vocab_size: not the configuration of a BERT"));
  REQUIRE_THROWS_WITH(parse("[]"), Contains("c: expected an object"));
  REQUIRE_THROWS_WITH(parse("{" + sizes + R"(, "type_vocab_size": 0})"), Contains("type_vocab_size: expected 1"));
  REQUIRE_THROWS_WITH(parse("{" + sizes + R"(, "intermediate_size": 1e9})"), Contains("intermediate_size: expected 1"));
  REQUIRE_THROWS_WITH(parse("{" + sizes + R"(, "layer_norm_eps": "x"})"),
                      Contains("layer_norm_eps: expected a number"));
  REQUIRE_THROWS_WITH(parse("{" + sizes + R"(, "use_running_mean": 1})"), Contains("use_running_mean: expected true"));
  REQUIRE_THROWS_WITH(parse("{" + sizes + R"(, "hidden_act": 1})"), Contains("hidden_act: expected a string"));
  REQUIRE_THROWS_WITH(parse("{" + sizes + R"(, "position_embedding_type": "relative_key"})"),
                      Contains("position_embedding_type: expected absolute, got relative_key"));
  BertConfig swish = large;
  swish.hidden_act = "silu";
  REQUIRE_THROWS_WITH(etc_config_for(swish, BertKind::bert, false), Contains("activation silu: expected gelu, relu"));
}

TEST_CASE("RoBERTa's rows and its output bias follow the spelling of their pieces", "[convert]") {
  const test::TemporaryFolder folder;
  const BertConfig bert = small_bert();
  HubBert hub(bert, "roberta.");
  hub.tensors["lm_head.bias"] = Tensor::from(test::random_floats(12, 3), {12}, Purpose::weights);
  hub.tensors["lm_head.dense.weight"] = Tensor::from(test::random_floats(64, 4), {8, 8}, Purpose::weights);
  const auto source = source_of(hub, folder);
  // Twelve pieces, U+0120 written as its bytes; each piece's row is its index.
  const std::vector<std::string> pieces = {"<s>",
                                           "<pad>",
                                           "</s>",
                                           "<unk>",
                                           "a",
                                           "\xC4\xA0"
                                           "a",
                                           "b",
                                           "\xC4\xA0"
                                           "b",
                                           "c",
                                           "only",
                                           "<mask>",
                                           ""};
  const std::vector<std::string> target = {"<pad>",
                                           "</s>",
                                           "<unused_39>",
                                           "[SEP]",
                                           "[MASK]",
                                           "\xE2\x96\x81"
                                           "a",
                                           "c",
                                           "b",
                                           "a",
                                           "<unk>",
                                           "new",
                                           "<s>"};
  const FindPiece find = [&](const std::string& piece) -> std::optional<std::int64_t> {
    const auto found = std::find(target.begin(), target.end(), piece);
    return found == target.end() ? std::nullopt : std::optional<std::int64_t>(found - target.begin());
  };
  const VocabularyMatch match = match_vocabularies(pieces, BertKind::roberta, 12, find);
  REQUIRE(match.source_rows == std::vector<std::int64_t>{1, 2, 0, 2, 10, 5, 8, 6, 4, 3, -1, 0});
  REQUIRE(match.unmatched_targets == 1);
  REQUIRE(match.unmatched_sources == std::vector<std::string>{"\xC4\xA0"
                                                              "b",
                                                              "only"});

  EtcConfig config = small_etc(bert);
  LiftOptions options;
  options.kind = BertKind::roberta;
  ParameterSet parameters;
  const ConversionReport report = lift_bert(*source, bert, config, &match, options, parameters);
  const Tensor table = parameters.at("etc_document_bert/token_emb_lookup/embedding_table").value;
  const Tensor bias = parameters.at("cls/predictions/output_bias").value;
  for (std::int64_t row = 0; row < 12; ++row) {
    const std::int64_t from = match.source_rows[static_cast<std::size_t>(row)];
    for (std::int64_t j = 0; j < 8 && from >= 0; ++j) {
      REQUIRE(table.data()[row * 8 + j] == hub.at("roberta.embeddings.word_embeddings.weight", from * 8 + j));
    }
    REQUIRE(bias.data()[row] == (from >= 0 ? hub.at("lm_head.bias", from) : 0));
  }
  bool fresh = false;
  for (std::int64_t j = 0; j < 8; ++j) {
    REQUIRE(std::abs(table.data()[10 * 8 + j]) <= 0.04f);
    fresh = fresh || table.data()[10 * 8 + j] != 0;
  }
  REQUIRE(fresh);
  REQUIRE(parameters.at("cls/predictions/transform/dense/kernel").value.data()[1] == hub.at("lm_head.dense.weight", 8));
  REQUIRE_THAT(report.text(),
               Contains("vocabulary: 11 of 12 pieces found, 1 initialised; 2 pieces of the source unused") &&
                   Contains("<unused_39> from <s>, [SEP] from </s>, [MASK] from <mask>"));

  VocabularyMatch poor = match;
  poor.unmatched_targets = 2;
  ParameterSet others;
  REQUIRE_THROWS_WITH(lift_bert(*source, bert, config, &poor, options, others),
                      Contains("lift: 10 of the 12 pieces") && Contains("expected 90 % or more"));
  options.allow_partial_vocabulary = true;
  REQUIRE_NOTHROW(lift_bert(*source, bert, config, &poor, options, others));
}

TEST_CASE("vocabularies that do not name each row once are refused", "[convert]") {
  const test::TemporaryFolder folder;
  const fs::path json = folder / "vocab.json", text = folder / "vocab.txt";
  test::write_file(json, R"({"a": 1, "b": 0})");
  REQUIRE(read_source_vocabulary(json, 3) == std::vector<std::string>{"b", "a"});
  test::write_file(json, R"({"a": 2, "b": 0})");
  REQUIRE(read_source_vocabulary(json, 9) == std::vector<std::string>{"b", "", "a"});
  test::write_file(text, "a\r\nb\nc");
  REQUIRE(read_source_vocabulary(text, 3) == std::vector<std::string>{"a", "b", "c"});
  REQUIRE_THROWS_WITH(read_source_vocabulary(text, 2), Contains("vocab.txt: 3 pieces: expected at most 2"));
  test::write_file(text, "a\nb\na\n");
  REQUIRE_THROWS_WITH(read_source_vocabulary(text, 9), Contains("vocab.txt: line 3: a comes twice"));
  test::write_file(json, R"({"a": 1, "b": 1})");
  REQUIRE_THROWS_WITH(read_source_vocabulary(json, 3), Contains("a and b have the same row 1"));
  test::write_file(json, R"({"a": 3})");
  REQUIRE_THROWS_WITH(read_source_vocabulary(json, 3), Contains("a: expected a row below 3, got 3"));
  test::write_file(json, R"({"a": 16777215})");
  REQUIRE_THROWS_WITH(read_source_vocabulary(json, 1 << 24),
                      Contains("vocab.json: a: row 16777215 in a vocabulary of 1 pieces"));
  test::write_file(json, R"({"a": "x"})");
  REQUIRE_THROWS_WITH(read_source_vocabulary(json, 3), Contains("expected a row below 3"));
  test::write_file(json, "[]");
  REQUIRE_THROWS_WITH(read_source_vocabulary(json, 3), Contains("expected an object"));
}

namespace {

// Mutants of the files beside a BERT checkpoint: its configuration and vocabularies.
// A separate function, because an assertion reports exceptions in its expression as failures.
void check_rows(std::size_t rows, std::size_t most) {
  REQUIRE(rows <= most);
}

void read_lift_mutants(int count) {
  const test::TemporaryFolder folder;
  const fs::path json = folder / "vocab.json", text = folder / "vocab.txt";
  const std::string config = json_text(test::small_bert_json());
  int refused = 0;
  const auto attempt = [&](auto&& read) {
    try {
      read();
    } catch (const Error&) {
      ++refused;
    }
  };
  for (int seed = 0; seed < count; ++seed) {
    const auto number = static_cast<std::uint64_t>(seed);
    attempt([&] {
      const BertConfig bert = bert_config_from_json(parse_json(test::mutate(config, number), "c"), "c");
      etc_config_for(bert, BertKind::bert, number % 2 == 0).validate();
    });
    test::write_file(json, test::mutate(R"({"<s>": 0, "\u0120the": 4, "a": 1, "b\\": 2, "\"": 3})", number));
    attempt([&] { check_rows(read_source_vocabulary(json, 5).size(), 5); });
    test::write_file(text, test::mutate("[PAD]\n[UNK]\r\nthe\n##s\n\xC3\xA4\n", number));
    attempt([&] { check_rows(read_source_vocabulary(text, 9).size(), 9); });
  }
  CHECK(refused > count / 2);
}

}  // namespace

TEST_CASE("mutants of a BERT's configuration and vocabulary are read or refused, never crash", "[convert]") {
  read_lift_mutants(200);
}

TEST_CASE("many mutants of a BERT's configuration and vocabulary are read or refused, never crash", "[convert][slow]") {
  read_lift_mutants(5000);
}
