// Encoder-decoders against dense_reference.h5, groups `seq2seq` and `admin`.
#include <cmath>
#include <cstdio>
#include <map>

#include "etc_core/autograd/attention.h"
#include "etc_core/nn/backends.h"
#include "etc_core/nn/seq2seq/admin_profile.h"
#include "etc_core/nn/seq2seq/encoder_decoder.h"
#include "sparse/seq2seq_attention.h"
#include "tests/core/nn/admin_omegas.h"
#include "tests/core/tensor_values.h"
#include "tests/golden/falsified.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/golden_group.h"
#include "tests/support/catch.h"
#include "tests/support/folders.h"
#include "tests/support/golden_h5.h"
#include "tests/support/h5_edit.h"
#include "tests/support/worst.h"

namespace etc::test {
namespace {

// A tenth of what the file's README allows float32 in outputs of several layers and gradients: many gradients are below 1e-2,
// so a wrong digit of one would be within the tolerance of 1e-4.
constexpr double kSeq2SeqAbsolute = 1e-5, kSeq2SeqRelative = 1e-5;

using Results = std::map<std::string, std::vector<float>>;  // by the file's names below a variant

// The file's name of a parameter: "enc0.self.Wq", "dec1.ffn.ln.gamma", "E".
std::string seq2seq_name(const std::string& name) {
  if (name == "seq2seq/embeddings/tokens") return "E";
  static const std::map<std::string, std::string> kNames = {
      {"query/kernel", "Wq"},          {"query/bias", "bq"},          {"key/kernel", "Wk"},    {"key/bias", "bk"},
      {"value/kernel", "Wv"},          {"value/bias", "bv"},          {"output/kernel", "Wo"}, {"output/bias", "bo"},
      {"LayerNorm/gamma", "ln.gamma"}, {"LayerNorm/beta", "ln.beta"}, {"inner/kernel", "W1"},  {"inner/bias", "b1"},
      {"outer/kernel", "W2"},          {"outer/bias", "b2"},          {"admin_omega", "omega"}};
  // seq2seq/encoder/layer_0/self_attention/query/kernel
  const std::size_t layer = name.find("layer_") + 6, sublayer = name.find('/', layer) + 1,
                    last = name.find('/', sublayer) + 1;
  const std::string stack = name.find("/encoder/") != std::string::npos ? "enc" : "dec";
  const std::string own = name.substr(sublayer, last - 1 - sublayer), of = kNames.at(name.substr(last));
  std::string prefix = own == "self_attention" ? "self." : own == "cross_attention" ? "cross." : "ffn.";
  if (prefix == "ffn." && (of[0] == 'W' || of[0] == 'b')) prefix.clear();
  return stack + name.substr(layer, sublayer - 1 - layer) + "." + prefix + of;
}

Seq2SeqConfig seq2seq_config(const GoldenFile& file, const std::string& variant) {
  const auto setting = [&](const char* name) { return file.int_attribute("seq2seq", name); };
  Seq2SeqConfig config;
  config.vocab_size = file.read<float>("seq2seq/param/E").shape.at(0);
  config.hidden_size = setting("hidden");
  config.num_hidden_layers = setting("encoder_layers");
  config.num_decoder_layers = setting("decoder_layers");
  config.num_attention_heads = setting("heads");
  config.intermediate_size = setting("inner");
  config.layer_norm_epsilon = file.real_attribute("seq2seq", "layer_norm_eps");
  config.hidden_act = file.string_attribute("seq2seq", "activation");
  if (variant.starts_with("admin")) config.norm = Seq2SeqConfig::Norm::admin;
  config.use_residual_attention = variant.find("residual") != std::string::npos;
  config.use_running_mean = variant.ends_with("mean");
  // What a model has no settings for.
  REQUIRE(file.real_attribute("seq2seq", "embed_scale") ==
          Approx(std::sqrt(static_cast<double>(config.hidden_size))).epsilon(1e-12));
  REQUIRE(setting("pad") == Seq2SeqConfig::kPad);
  REQUIRE(setting("eos") == Seq2SeqConfig::kEndOfSentence);
  REQUIRE(setting("first_position") == Seq2SeqConfig::kPad + 1);
  return config;
}

// A model with the file's values, ω included.
struct Model {
  Model(const GoldenFile& file, const Seq2SeqConfig& config)
      : encoder(config, parameters), decoder(config, parameters) {
    register_cpu_backend();
    parameters.initialize(1);
    for (const auto& parameter : parameters.all()) {
      const std::string name = seq2seq_name(parameter->name);
      if (name.ends_with(".omega")) continue;
      const auto values = file.read<float>("seq2seq/param/" + name);
      REQUIRE(values.shape == parameter->shape);
      parameter->value = Tensor::from(values.values, parameter->shape, Purpose::weights);
    }
    const std::vector<std::string> branches = file.read_strings("admin/branch");
    const std::vector<float> omegas = file.read<float>("admin/omega").values;
    for (Parameter* omega : admin_omegas(parameters)) {
      const auto at = std::find(branches.begin(), branches.end(), branch_of(*omega));
      REQUIRE(at != branches.end());
      std::fill_n(omega->value.data(), omega->size(), omegas.at(static_cast<std::size_t>(at - branches.begin())));
    }
  }

  static std::string branch_of(const Parameter& omega) {
    const std::string name = seq2seq_name(omega.name);
    return name.substr(0, name.rfind('.'));
  }

  ParameterSet parameters;
  Seq2SeqEncoder encoder;
  Seq2SeqDecoder decoder;
};

struct Pair {
  explicit Pair(const GoldenFile& file) : labels(file.read<std::int32_t>("seq2seq/target_out").values) {
    source.token_ids = file.read<std::int32_t>("seq2seq/source").values;
    source.long_offsets = {0, std::ssize(source.token_ids)};
    source.global_offsets = {0, 0};
    target.target_ids = file.read<std::int32_t>("seq2seq/target_in").values;
    target.target_offsets = {0, std::ssize(target.target_ids)};
  }
  EncoderInput source;
  DecoderInput target{source.long_offsets};
  std::vector<std::int32_t> labels;
};

bool hidden_by_causality(std::int64_t query, std::int64_t key) {
  return key > query;
}

// Running scores in the file's layout, [H, queries, keys]; 0 at pairs that a decoder's causal mask hides.
std::vector<float> carry_of(const Tensor& scores, std::int64_t heads, std::int64_t queries, std::int64_t keys) {
  if (scores.rank() == 1) return values_of(scores);  // cross-attention: all keys are visible
  const std::int64_t width = scores.dim(2), before = width == 2 * keys - 1 ? keys - 1 : width - 1;
  std::vector<float> out;
  for (std::int64_t i = 0; i < heads * queries * keys; ++i) {
    const std::int64_t key = i % keys, query = i / keys % queries, head = i / keys / queries;
    const std::int64_t column = key - query + before;
    out.push_back(column < width ? scores.data()[(head * queries + query) * width + column] : 0.0f);
  }
  return out;
}

// Adds a layer's scores [H, n, n] of the decoder's self-attention. The file has them of hidden pairs, too, which the
// model does not compute.
void add_all_scores(const WatchedAttention& watched, std::vector<double>& sums) {
  const sparse::AttentionInputs& read = watched.inputs;
  if (read.tiles->op != &sparse::kDecoderSelfAttention) return;
  const sparse::Rows &q = read.q, &k = read.keys[0].k;
  const std::int64_t n = q.rows, d = read.head_size;
  sums.resize(static_cast<std::size_t>(read.heads * n * n));
  for (std::int64_t i = 0; i < std::ssize(sums); ++i) {
    const std::int64_t key = i % n, query = i / n % n, first = i / n / n * d;
    double product = 0;
    for (std::int64_t c = first; c < first + d; ++c) {
      product += static_cast<double>(q.data[query * q.stride + c]) * static_cast<double>(k.data[key * k.stride + c]);
    }
    sums[static_cast<std::size_t>(i)] += product * static_cast<double>(sparse::score_scale(read));
  }
}

// Fills in the hidden pairs.
void add_hidden(std::vector<float>& carry, const std::vector<double>& sums, std::int64_t n) {
  for (std::int64_t i = 0; i < std::ssize(carry); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (hidden_by_causality(i / n % n, i % n)) carry[at] = static_cast<float>(sums.at(at));
  }
}

Results results_of(const GoldenFile& file, const std::string& variant, std::int64_t period) {
  Seq2SeqConfig config = seq2seq_config(file, variant);
  config.grad_checkpointing_period = period;
  Model model(file, config);
  const Pair pair(file);
  Results results;
  const auto carries = [&](const std::vector<std::string>& types, std::int64_t last) {
    ForwardOptions options;
    options.watch = [&results, &pair, config, types, last](std::int64_t layer, const Tensor&, const Tensor&,
                                                           const ExternalScores& scores) {
      if (layer != last) return;
      for (const std::string& type : types) {
        const Tensor carry = scores.of(type);
        if (!carry) continue;
        const std::int64_t queries = type == "encoder_self" ? pair.source.long_tokens() : pair.target.target_offsets[1];
        const std::int64_t keys = type == "decoder_self" ? queries : pair.source.long_tokens();
        results["final_carry/" + type] = carry_of(carry, config.num_attention_heads, queries, keys);
      }
    };
    return options;
  };
  Tape tape(Recording::on);
  {
    const Var encoded =
        model.encoder.forward(tape, pair.source, carries({"encoder_self"}, config.num_hidden_layers - 1)).long_states;
    ForwardOptions of_decoder = carries({"decoder_self", "cross"}, config.num_decoder_layers - 1);
    std::vector<double> sums;
    of_decoder.attention_watch = [&](const WatchedAttention& watched) { add_all_scores(watched, sums); };
    const Var decoded = model.decoder.forward(tape, encoded, pair.target, of_decoder);
    if (results.count("final_carry/decoder_self") > 0) {
      add_hidden(results["final_carry/decoder_self"], sums, pair.target.target_offsets[1]);
    }
    results["encoder_output"] = values_of(encoded.value());
    results["decoder_output"] = values_of(decoded.value());
    results["logits"] = values_of(vocabulary_logits(decoded.value(), model.decoder.output()));
    const VocabularyResult loss = vocabulary_loss_with_gradients(decoded.value(), model.decoder.output(), pair.labels,
                                                                 1, file.real_attribute("seq2seq", "label_smoothing"));
    double sum = 0;
    for (const double of_token : loss.smoothed) sum += of_token;
    results["loss_sum"] = {static_cast<float>(sum)};
    decoded.gradient()->add(loss.dx);
  }
  tape.backward();
  for (const auto& parameter : model.parameters.all()) {
    const std::string name = seq2seq_name(parameter->name);
    if (name.ends_with(".omega")) continue;  // the file holds it constant
    INFO(parameter->name);
    REQUIRE(parameter->grad);
    results["grad/" + name] = values_of(parameter->grad);
  }
  return results;
}

struct TensorDifference {
  double worst = 0;  // in units of the tolerance
  std::string where;
  std::size_t data_sets = 0;
};

// Compares every data set of the variant with the results; both sides must have the same names.
TensorDifference compare(const GoldenFile& file, const std::string& variant, const Results& results) {
  TensorDifference difference;
  for (const std::string& name : data_sets_below(file, "seq2seq/" + variant)) {
    INFO(name);
    REQUIRE(results.count(name) == 1);
    const std::vector<float>& actual = results.at(name);
    const auto expected = file.read<double>("seq2seq/" + variant + "/" + name).values;
    ++difference.data_sets;
    const double worst = worst_difference(expected, actual, kSeq2SeqAbsolute, kSeq2SeqRelative);
    if (worst <= difference.worst) continue;
    difference.worst = worst;
    difference.where = name;
  }
  REQUIRE(difference.data_sets == results.size());
  return difference;
}

// Changes the largest number of every data set, and of the decoder's scores the largest at a hidden pair, by a hundredth,
// one at a time; returns how many changes large enough for the tolerances were not noticed.
std::size_t unnoticed(const GoldenFile& file, const std::string& variant, const Results& results) {
  const TemporaryFolder folder;
  const auto path = folder / "falsified.h5";
  std::filesystem::copy_file(file.path(), path);
  std::size_t missed = 0, changed = 0;
  for (const std::string& name : data_sets_below(file, "seq2seq/" + variant)) {
    const std::string full = "seq2seq/" + variant + "/" + name;
    const auto array = file.read<double>(full);
    for (const bool hidden : {false, true}) {
      if (hidden && name != "final_carry/decoder_self") continue;
      const std::int64_t at = largest_place(array.values, [&](std::size_t i) {
        const std::int64_t n = array.shape.empty() ? 1 : array.shape.back(), pair = static_cast<std::int64_t>(i);
        return !hidden || hidden_by_causality(pair / n % n, pair % n);
      });
      // Key biases, whose gradient is a rounding error.
      if (std::abs(array.values[static_cast<std::size_t>(at)]) < 0.003) continue;
      ++changed;
      H5Edit(path).scale_element("/" + full, at, 1.01);
      const TensorDifference now = compare(GoldenFile(path), variant, results);
      missed += now.worst <= 1 || now.where != name;
      H5Edit(path).scale_element("/" + full, at, 1 / 1.01);
    }
  }
  CHECK(changed > 0);
  return missed;
}

TEST_CASE("encoder-decoders have the states, losses, carried scores and gradients of the formulas", "[golden]") {
  for_each_file_with("seq2seq/source", [](const GoldenFile& file) {
    std::size_t variants = 0;
    for (const std::string& variant : file.groups("seq2seq")) {
      if (variant == "param") continue;
      CAPTURE(variant);
      for (const std::int64_t period : {0, 1}) {
        const Results results = results_of(file, variant, period);
        const TensorDifference difference = compare(file, variant, results);
        CAPTURE(period, difference.where);
        CHECK(difference.worst <= 1);
        std::printf("seq2seq/%-20s period %d: %.3f of what is tolerated (%s)\n", variant.c_str(),
                    static_cast<int>(period), difference.worst, difference.where.c_str());
        if (period == 0) CHECK(unnoticed(file, variant, results) == 0);
      }
      ++variants;
    }
    CHECK(variants > 0);
    file.require_all_read("seq2seq");
  });
}

TEST_CASE("a profile pass sets the numbers of ADMIN that the formulas give", "[golden]") {
  for_each_file_with("admin/omega", [](const GoldenFile& file) {
    Seq2SeqConfig config = seq2seq_config(file, "admin");
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = config.inner_dropout_prob = 0;
    Model model(file, config);
    for (Parameter* omega : admin_omegas(model.parameters)) std::fill_n(omega->value.data(), omega->size(), 7.0f);
    const Pair pair(file);
    const std::vector<AdminBranch> profile = profile_admin(model.encoder, model.decoder, pair.source, pair.target, {});
    const std::vector<std::string> branches = file.read_strings("admin/branch");
    const auto numbers = [&](const char* name) { return file.read<double>(std::string("admin/") + name).values; };
    const std::vector<double> omegas = numbers("omega"), skips = numbers("var_skip_scaled"),
                              own = numbers("var_branch");
    REQUIRE(profile.size() == branches.size());
    for (const auto* const of : {&omegas, &skips, &own}) REQUIRE(of->size() == branches.size());
    double worst = 0;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const AdminBranch& branch = profile[i];
      CAPTURE(branches[i]);
      CHECK(Model::branch_of(*branch.omega) == branches[i]);
      for (const auto& [actual, expected] :
           {std::pair(branch.value, omegas[i]), {branch.skip_variance, skips[i]}, {branch.branch_variance, own[i]}}) {
        keep_worst(worst, std::abs(actual - expected) / std::abs(expected));
      }
      for (const float value : values_of(branch.omega->value)) CHECK(value == static_cast<float>(branch.value));
    }
    CHECK(worst < 2e-6);
    CHECK(worst < std::abs(omegas[1] * 0.001));  // a change by a thousandth would be noticed
    file.require_all_read("admin");
    std::printf("admin: profiled numbers and variances differ by %.1e at most\n", worst);
  });
}

}  // namespace
}  // namespace etc::test
