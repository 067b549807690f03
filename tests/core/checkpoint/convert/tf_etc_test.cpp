#include "etc_core/checkpoint/convert/tf_etc.h"

#include <cmath>

#include "etc_core/base/memory_ledger.h"
#include "etc_core/checkpoint/convert/converted_model.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_writer.h"
#include "etc_core/checkpoint/model_files.h"
#include "etc_core/nn/etc_encoder.h"
#include "tests/core/checkpoint/convert/small_checkpoints.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"

using namespace etc;
using namespace etc::convert;
using Catch::Contains;
using test::small_etc_config;
using test::TfCheckpoint;
namespace fs = std::filesystem;

namespace {

ConversionReport read(const fs::path& prefix, const EtcConfig& config, ParameterSet& parameters,
                      const TfEtcOptions& options = {}, TfEtcExtras* extras = nullptr) {
  TfEtcExtras ignored;
  return read_tf_etc(*open_tensors(prefix), config, options, parameters, extras != nullptr ? *extras : ignored);
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::equal(a.data(), a.data() + a.size(), b.data());
}

const std::string kFused =
    "etc_document_bert/global_local_transformer_layers/fused_att_layer_0/fused_global_local_att/";

}  // namespace

TEST_CASE("every variable arrives bit by bit under every sharing flag", "[convert]") {
  const test::TemporaryFolder folder;
  for (int flags = 0; flags < 64; ++flags) {
    EtcConfig config = small_etc_config();
    config.share_feed_forward_params = (flags & 1) != 0;
    config.share_kv_projections = (flags & 2) != 0;
    config.share_qkv_projections = (flags & 4) != 0;
    config.share_att_output_projection = (flags & 8) != 0;
    if (flags & 16) {
      config.relative_vocab_size.reset();
      config.relative_pos_max_distance = 0;
    }
    if (flags & 32) {
      config.embedding_size = 6;
      config.att_size_per_head = 3;
      config.max_absolute_position_embeddings = 5;
    }
    CAPTURE(flags);
    TfCheckpoint checkpoint(config);
    // Position tables with or without the model prefix.
    checkpoint.add([&](const std::string& name) {
      const bool prefixed = flags % 3 == 0 && name.starts_with("position_emb_lookup_");
      return prefixed ? "etc_document_bert/" + name : name;
    });
    checkpoint.writer.write(folder / "m.ckpt");
    ParameterSet parameters;
    const ConversionReport report = read(folder / "m.ckpt", config, parameters);
    REQUIRE(parameters.all().size() == checkpoint.parameters.all().size());
    for (const auto& parameter : parameters.all()) {
      REQUIRE(same(parameter->value, checkpoint.parameters.at(parameter->name).value));
    }
    REQUIRE(report.copied.size() == parameters.all().size());
    REQUIRE(report.initialised.empty());
    REQUIRE(report.left_out.empty());
  }
}

TEST_CASE("a configuration that contradicts the variables is refused, naming field and variable", "[convert]") {
  const test::TemporaryFolder folder;
  const auto refuses = [&](const EtcConfig& stored, const EtcConfig& configured, const std::string& message) {
    TfCheckpoint checkpoint(stored);
    checkpoint.add();
    checkpoint.writer.write(folder / "m.ckpt");
    ParameterSet parameters;
    REQUIRE_THROWS_WITH(read(folder / "m.ckpt", configured, parameters),
                        Contains("m.ckpt: the configuration is not that of the checkpoint:") && Contains(message));
  };
  const auto changed = [](auto&& change) {
    EtcConfig config = small_etc_config();
    change(config);
    return config;
  };
  const EtcConfig base = small_etc_config();
  const EtcConfig shares_qkv = changed([](EtcConfig& c) { c.share_qkv_projections = true; });
  refuses(base, shares_qkv,
          "share_qkv_projections: the configuration says true, the checkpoint false: it has " + kFused +
              "global_query_projection/linear/kernel F32 [8, 8]");
  refuses(shares_qkv, base,
          "share_qkv_projections: the configuration says false, the checkpoint true: it has no " + kFused +
              "global_query_projection/linear/kernel");
  const EtcConfig shares_kv = changed([](EtcConfig& c) { c.share_kv_projections = true; });
  refuses(base, shares_kv, "share_kv_projections: the configuration says true, the checkpoint false: it has ");
  refuses(shares_kv, base, "share_kv_projections: the configuration says false, the checkpoint true: it has no ");
  const EtcConfig shares_output = changed([](EtcConfig& c) { c.share_att_output_projection = true; });
  refuses(base, shares_output, "share_att_output_projection: the configuration says true, the checkpoint false");
  refuses(shares_output, base, "share_att_output_projection: the configuration says false, the checkpoint true");
  const EtcConfig separate = changed([](EtcConfig& c) { c.share_feed_forward_params = false; });
  refuses(base, separate, "share_feed_forward_params: the configuration says false, the checkpoint true");
  refuses(separate, base, "share_feed_forward_params: the configuration says true, the checkpoint false");
  refuses(base, changed([](EtcConfig& c) { c.num_hidden_layers = 3; }),
          "num_hidden_layers: the configuration says 3, the checkpoint 2: it has etc_document_bert/");
  refuses(base, changed([](EtcConfig& c) { c.num_hidden_layers = 1; }), "num_hidden_layers: ");
  refuses(base, changed([](EtcConfig& c) { c.hidden_size = 16; }), "hidden_size: the configuration says 16");
  refuses(base, changed([](EtcConfig& c) { c.intermediate_size = 16; }), "intermediate_size: ");
  refuses(base, changed([](EtcConfig& c) { c.num_attention_heads = 4; }), "num_attention_heads: ");
  refuses(base, changed([](EtcConfig& c) { c.att_size_per_head = 5; }), "att_size_per_head: ");
  refuses(base, changed([](EtcConfig& c) { c.vocab_size = 12; }), "vocab_size: the configuration says 12");
  refuses(base, changed([](EtcConfig& c) { c.segment_vocab_size = 12; }), "segment_vocab_size: ");
  refuses(base, changed([](EtcConfig& c) { c.embedding_size = 4; }), "embedding_size: ");
  refuses(base, changed([](EtcConfig& c) { c.relative_vocab_size = 32; }),
          "relative_vocab_size: the configuration says 32, the checkpoint 28: it has ");
  const EtcConfig without = changed([](EtcConfig& c) {
    c.relative_vocab_size.reset();
    c.relative_pos_max_distance = 0;
  });
  refuses(base, without, "relative_vocab_size: the configuration says null, the checkpoint 28");
  refuses(without, base, "relative_vocab_size: the configuration says 28, the checkpoint null: it has no ");
  const EtcConfig positions = changed([](EtcConfig& c) { c.max_absolute_position_embeddings = 5; });
  refuses(base, positions, "max_absolute_position_embeddings: the configuration says 5, the checkpoint 0: it has no ");
  refuses(positions, base, "max_absolute_position_embeddings: the configuration says 0, the checkpoint 5: it has ");
}

TEST_CASE("variables that do not correspond are all listed", "[convert]") {
  const test::TemporaryFolder folder;
  TfCheckpoint checkpoint(small_etc_config());
  const std::string gamma = "etc_document_bert/long_emb_layer_norm/beta";
  const std::string kernel = kFused + "g2l_key_projection/linear/kernel";
  checkpoint.add([&](const std::string& name) -> std::string {
    if (name == gamma) return "";
    return name == kernel ? name + "_renamed" : name;
  });
  checkpoint.writer.write(folder / "m.ckpt");
  ParameterSet parameters;
  REQUIRE_THROWS_WITH(read(folder / "m.ckpt", small_etc_config(), parameters),
                      Contains("3 tensors unmatched: ") && Contains(gamma + " [8] absent in file; ") &&
                          Contains(kernel + " [8, 8] absent in file; ") &&
                          Contains(kernel + "_renamed F32 [8, 8] unused"));

  TfCheckpoint twice([] {
    EtcConfig config = small_etc_config();
    config.max_absolute_position_embeddings = 5;
    return config;
  }());
  twice.add();
  const std::string table = "position_emb_lookup_long/embedding_table";
  twice.writer.add("etc_document_bert/" + table, twice.parameters.at(table).value);
  twice.writer.write(folder / "m.ckpt");
  ParameterSet others;
  REQUIRE_THROWS_WITH(read(folder / "m.ckpt", small_etc_config(), others),
                      Contains(table + " is there with and without the model's prefix"));

  TfBundleWriter bert;
  bert.add_i64("bert/pooler/dense/bias", 1);
  bert.write(folder / "m.ckpt");
  REQUIRE_THROWS_WITH(read(folder / "m.ckpt", small_etc_config(), others), Contains("not an ETC checkpoint"));
}

TEST_CASE("weights that are not finite are refused, naming tensor and element", "[convert]") {
  const test::TemporaryFolder folder;
  TfCheckpoint checkpoint(small_etc_config());
  checkpoint.parameters.at("etc_document_bert/segment_emb_lookup/embedding_table").value.data()[8 * 3 + 5] = NAN;
  checkpoint.add();
  checkpoint.writer.write(folder / "m.ckpt");
  ParameterSet parameters;
  REQUIRE_THROWS_WITH(read(folder / "m.ckpt", small_etc_config(), parameters),
                      Contains("segment_emb_lookup/embedding_table [16, 8]: expected finite weights, got nan at "
                               "element [3, 5]"));
}

TEST_CASE("a shard that is cut off or missing is found before room is made for its numbers", "[convert]") {
  const test::TemporaryFolder folder;
  EtcConfig config = small_etc_config();
  config.vocab_size = 500'000;
  {
    TfCheckpoint checkpoint(config);
    checkpoint.add();
    checkpoint.writer.write(folder / "m.ckpt");
  }
  memory_ledger::reset_peak();
  const std::int64_t before = memory_ledger::report().peak;
  const fs::path shard = (folder / "m.ckpt").string() + ".data-00001-of-00002";
  fs::resize_file(shard, 100);
  ParameterSet parameters;
  REQUIRE_THROWS_WITH(read(folder / "m.ckpt", config, parameters), Contains("data-00001-of-00002: "));
  fs::remove(shard);
  ParameterSet others;
  REQUIRE_THROWS_WITH(read(folder / "m.ckpt", config, others), Contains("data-00001-of-00002: cannot open"));
  REQUIRE(memory_ledger::report().peak == before);
}

TEST_CASE("heads, optimiser slots and strangers are listed or taken, as asked", "[convert]") {
  const test::TemporaryFolder folder;
  const EtcConfig config = small_etc_config();
  TfCheckpoint checkpoint(config);
  checkpoint.add();
  const Tensor head = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8}, {1, 8}, Purpose::weights);
  const std::string kernel = kFused + "long_output_projection/kernel";
  const Tensor slot = checkpoint.parameters.at(kernel).value;
  checkpoint.writer.add("output_weights", head);
  checkpoint.writer.add("output_weights/adam_m", head);
  checkpoint.writer.add(kernel + "/adam_m", slot);
  checkpoint.writer.add(kernel + "/adam_v", slot);
  checkpoint.writer.add("someone/elses", head);
  checkpoint.writer.add_i64("global_step", 1234);
  checkpoint.writer.write(folder / "m.ckpt");
  {
    ParameterSet parameters;
    TfEtcExtras extras;
    const ConversionReport report = read(folder / "m.ckpt", config, parameters, {.keep_heads = false}, &extras);
    REQUIRE(parameters.find("output_weights") == nullptr);
    REQUIRE(extras.slots.empty());
    REQUIRE(!extras.global_step);
    REQUIRE(report.left_out.size() == 5);
    const std::string text = report.text();
    REQUIRE_THAT(text, Contains("left out: 5 tensors\n") &&
                           Contains("output_weights F32 [1, 8]: head of task wikihop") &&
                           Contains("  3 optimiser slots\n") && Contains("someone/elses F32 [1, 8]: unknown\n") &&
                           Contains("note: trained for 1234 steps\n"));
    const Json json = report.to_json();
    REQUIRE(json["left_out"].size() == 5);
    REQUIRE(json["copied"].size() == parameters.all().size());
  }
  ParameterSet parameters;
  TfEtcExtras extras;
  const ConversionReport report = read(folder / "m.ckpt", config, parameters, {true, true}, &extras);
  REQUIRE(same(parameters.at("output_weights").value, head));
  REQUIRE(extras.slots.size() == 3);
  REQUIRE(same(extras.slots.at(kernel + "/adam_v"), slot));
  REQUIRE(report.left_out.size() == 1);

  save_converted_model(folder / "model", {Json{{"model", config.to_json()}}, parameters, extras}, report);
  ParameterSet loaded;
  const EtcEncoder encoder(read_etc_config(folder / "model"), loaded);
  load_parameters(folder / "model/model.safetensors", loaded, Match::encoder);
  REQUIRE(same(loaded.at(kernel).value, slot));
  const TensorFileReader slots(folder / "model/optimizer_slots.safetensors");
  REQUIRE(slots.entries().size() == 4);
  REQUIRE(slots.read_i64("global_step") == std::vector<std::int64_t>{1234});
  REQUIRE(read_json_file(folder / "model/conversion.json")["kind"] == "TensorFlow ETC checkpoint");
}

TEST_CASE("an optimiser slot of another shape than its variable is refused", "[convert]") {
  const test::TemporaryFolder folder;
  TfCheckpoint checkpoint(small_etc_config());
  checkpoint.add();
  const std::string gamma = "etc_document_bert/long_emb_layer_norm/gamma";
  checkpoint.writer.add(gamma + "/adam_m", Tensor::from({1}, {1}, Purpose::weights));
  checkpoint.writer.write(folder / "m.ckpt");
  ParameterSet parameters;
  REQUIRE_THROWS_WITH(read(folder / "m.ckpt", small_etc_config(), parameters, {false, true}),
                      Contains(gamma + "/adam_m: expected [8] as its variable, got F32 [1]"));
}

TEST_CASE("the heads of every task are known by the names of their variables", "[convert]") {
  const std::vector<std::pair<const char*, const char*>> names = {{"cls/nq/output_bias", "nq"},
                                                                  {"cls/squad/output_weights", "squad"},
                                                                  {"cls/cpc/projection/kernel", "contrastive coding"},
                                                                  {"bert/pooler/dense/kernel", "next sentence or glue"},
                                                                  {"output_bias", "wikihop or glue"},
                                                                  {"word_emb_layer_norm/gamma", "openkp"},
                                                                  {"12gram_conv/kernel", "openkp"},
                                                                  {"logit_dense4/kernel", "openkp"},
                                                                  {"gram_conv/kernel", ""},
                                                                  {"12", ""},
                                                                  {"dense/kernel", ""}};
  for (const auto& [name, task] : names) {
    CAPTURE(name);
    CHECK(head_task(name) == task);
  }
}
