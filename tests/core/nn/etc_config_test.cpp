#include "etc_core/nn/etc_config.h"

#include "etc_core/base/error.h"
#include "etc_core/base/fields.h"
#include "etc_core/base/json.h"
#include "tests/support/catch.h"

using namespace etc;
using Catch::Contains;

namespace {

// A valid configuration with one field changed.
template <typename Change>
EtcConfig changed(Change&& change) {
  EtcConfig config;
  config.vocab_size = 100;
  change(config);
  return config;
}

template <typename Change>
void check_refused(const std::string& message, Change&& change) {
  CAPTURE(message);
  const EtcConfig config = changed(change);
  REQUIRE_THROWS_AS(config.validate(), UsageError);
  REQUIRE_THROWS_WITH(config.validate(), Contains("config: " + message));
}

}  // namespace

TEST_CASE("the default configuration is that of the reference", "[nn]") {
  const Json json = EtcConfig().to_json();
  REQUIRE(json.size() == 27);
  REQUIRE(json["hidden_size"] == 768);
  REQUIRE(json["embedding_size"].is_null());
  REQUIRE(json["share_qkv_projections"] == true);
  REQUIRE(json["relative_vocab_size"] == 32);
  REQUIRE(json["use_residual_attention"] == false);
  REQUIRE(json["residual_attention_types"] == Json({"l2l", "l2g", "g2g", "g2l"}));
  REQUIRE(json == EtcConfig{}.fields().defaults());
  for (const Field& field : EtcConfig{}.fields()) CHECK_FALSE(field.help.empty());
}

TEST_CASE("a configuration survives writing and reading", "[nn]") {
  EtcConfig config = etc_config_preset("large");
  config.vocab_size = 50000;
  config.embedding_size = 128;
  config.att_size_per_head = 32;
  config.relative_vocab_size.reset();
  config.relative_pos_max_distance = 0;
  config.hidden_act = "relu";
  config.use_residual_attention = true;
  config.residual_attention_types = {"l2l", "g2l"};
  const EtcConfig again =
      etc_config_from_json(parse_json(json_text(config.to_json()), "test"), "test", UnknownKeys::refuse);
  REQUIRE(again.to_json() == config.to_json());
  REQUIRE(again.attention_size() == 512);
  REQUIRE(again.embedding_width() == 128);
  REQUIRE(again.relative_labels() == 0);
}

TEST_CASE("unknown keys are errors in our files and warnings in a foreign etc_config.json", "[nn]") {
  const Json json = {{"vocab_size", 5}, {"num_heads", 3}, {"local_radus", 4}};
  REQUIRE_THROWS_WITH(etc_config_from_json(json, "a.json: model", UnknownKeys::refuse),
                      Contains("a.json: model: unknown key local_radus (did you mean local_radius?)"));
  REQUIRE(etc_config_from_json(json, "a.json", UnknownKeys::warn).vocab_size == 5);
  REQUIRE_THROWS_WITH(etc_config_from_json(Json::array(), "a.json", UnknownKeys::warn), Contains("expected an object"));
}

TEST_CASE("values of a wrong type are errors naming the key", "[nn]") {
  const auto message = [](const char* text) -> std::string {
    try {
      etc_config_from_json(parse_json(text, "test"), "a.json", UnknownKeys::warn);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  REQUIRE(message(R"({"hidden_size": "768"})") == "a.json: hidden_size: expected an integer, got \"768\"");
  REQUIRE(message(R"({"hidden_size": 7.5})") == "a.json: hidden_size: expected an integer, got 7.5");
  REQUIRE(message(R"({"hidden_size": null})") == "a.json: hidden_size: expected an integer, got null");
  REQUIRE(message(R"({"hidden_size": 18446744073709551615})") ==
          "a.json: hidden_size: expected an integer, got 18446744073709551615");
  REQUIRE(message(R"({"embedding_size": true})") == "a.json: embedding_size: expected an integer or null, got true");
  REQUIRE(message(R"({"hidden_dropout_prob": "0.1"})") ==
          "a.json: hidden_dropout_prob: expected a number, got \"0.1\"");
  REQUIRE(message(R"({"use_running_mean": 1})") == "a.json: use_running_mean: expected true or false, got 1");
  REQUIRE(message(R"({"hidden_act": 1})") == "a.json: hidden_act: expected a string, got 1");
  REQUIRE(message(R"({"residual_attention_types": "l2l"})") ==
          "a.json: residual_attention_types: expected a list of strings, got \"l2l\"");
  // Null where the reference allows it.
  REQUIRE(message(R"({"vocab_size": null, "hidden_act": null, "embedding_size": null,
                      "relative_vocab_size": null})")
              .empty());
}

TEST_CASE("impossible configurations are refused, naming field, value and limit", "[nn]") {
  REQUIRE_NOTHROW(changed([](EtcConfig&) {}).validate());
  check_refused("vocab_size: expected an integer from 1 to 16777216, got 0", [](EtcConfig& c) { c.vocab_size = 0; });
  check_refused("relative_pos_max_distance: expected 0 since relative_vocab_size is null, got 12",
                [](EtcConfig& c) { c.relative_vocab_size.reset(); });
  check_refused("relative_vocab_size: expected at least 28 (twice relative_pos_max_distance=12, plus 4), got 27",
                [](EtcConfig& c) { c.relative_vocab_size = 27; });
  check_refused("relative_vocab_size: expected at least 4", [](EtcConfig& c) {
    c.relative_pos_max_distance = 0;
    c.relative_vocab_size = 3;
  });
  check_refused("relative_vocab_size: expected at most 255 (labels are one byte), got 256",
                [](EtcConfig& c) { c.relative_vocab_size = 256; });
  check_refused("hidden_size: expected a multiple of num_attention_heads=12, got 770",
                [](EtcConfig& c) { c.hidden_size = 770; });
  REQUIRE_NOTHROW(changed([](EtcConfig& c) {
                    c.hidden_size = 770;
                    c.att_size_per_head = 3;
                  }).validate());
  check_refused("num_attention_heads * att_size_per_head: expected at most 16777216, got 20000000", [](EtcConfig& c) {
    c.num_attention_heads = 20000;
    c.att_size_per_head = 1000;
  });
  check_refused("embedding_size: expected an integer from 1", [](EtcConfig& c) { c.embedding_size = 0; });
  check_refused("local_radius: expected an integer from 1 to 16777216, got 0",
                [](EtcConfig& c) { c.local_radius = 0; });
  check_refused("num_attention_heads: expected an integer from 1", [](EtcConfig& c) { c.num_attention_heads = 0; });
  check_refused("num_hidden_layers: expected an integer from 1 to 1000, got 1001",
                [](EtcConfig& c) { c.num_hidden_layers = 1001; });
  check_refused("att_size_per_head: expected an integer from 1 to 16777216 or null, got 0",
                [](EtcConfig& c) { c.att_size_per_head = 0; });
  check_refused("relative_pos_max_distance: expected an integer from 0 to 16777216, got -1",
                [](EtcConfig& c) { c.relative_pos_max_distance = -1; });
  check_refused("hidden_size: expected an integer from 1 to 16777216, got 9000000000000000000",
                [](EtcConfig& c) { c.hidden_size = 9000000000000000000; });
  check_refused("hidden_act: expected one of gelu, relu, tanh, linear, got \"gelo\" (did you mean gelu?)",
                [](EtcConfig& c) { c.hidden_act = "gelo"; });
  REQUIRE_NOTHROW(changed([](EtcConfig& c) { c.hidden_act = "ReLU"; }).validate());
  REQUIRE_NOTHROW(changed([](EtcConfig& c) { c.hidden_act = ""; }).validate());
  check_refused("hidden_dropout_prob: expected a number from 0 to below 1, got 1",
                [](EtcConfig& c) { c.hidden_dropout_prob = 1; });
  check_refused("attention_probs_dropout_prob: expected a number from 0 to below 1, got -0.5",
                [](EtcConfig& c) { c.attention_probs_dropout_prob = -0.5; });
  check_refused("initializer_range: expected a number from 0 to 1000000, got -1",
                [](EtcConfig& c) { c.initializer_range = -1; });
  check_refused("residual_attention_types: expected some of l2l, l2g, g2g, g2l, got l2c", [](EtcConfig& c) {
    c.residual_attention_types = {"l2l", "l2c"};
  });
  check_refused("residual_attention_types: \"l2l\" is listed twice", [](EtcConfig& c) {
    c.residual_attention_types = {"l2l", "l2l"};
  });
}

TEST_CASE("presets are valid once they have a vocabulary", "[nn]") {
  for (const char* name : {"tiny", "small", "base", "large"}) {
    EtcConfig config = etc_config_preset(name);
    REQUIRE_THROWS_WITH(config.validate(), Contains("vocab_size"));
    config.vocab_size = 30522;
    REQUIRE_NOTHROW(config.validate());
  }
  REQUIRE_THROWS_WITH(etc_config_preset("bas"), Contains("got \"bas\" (did you mean base?)"));
}
