// Head and visual embedding: the worked values, and values and gradients of the golden case.
#include "tasks/openkp/head.h"
#include "etc_core/nn/backends.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "etc_core/autograd/ngram.h"
#include "etc_core/nn/etc_encoder.h"
#include "tasks/openkp/feed.h"
#include "tasks/openkp/prepare.h"
#include "tasks/openkp/schema.h"
#include "tasks/openkp/scoring.h"
#include "tasks/openkp/visual.h"
#include "tests/core/autograd/gradient_check.h"
#include "tests/support/catch.h"
#include "tests/support/golden_h5.h"
#include "tests/support/worst.h"
#include "tests/tasks/golden_named.h"
#include "tests/tasks/openkp/golden_pages.h"
#include "tests/tasks/openkp/small_pages.h"
#include "tests/tasks/raw_records.h"

using namespace etc;
using namespace etc::openkp;

namespace {

using Numbers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

// A page with these words and elements, one entry per token, and different visual features for each element.
data::LoadedExample page(const Numbers& word_idx, const Numbers& vdom_idx, std::int64_t words) {
  data::LoadedExample loaded;
  const auto elements = static_cast<std::size_t>(vdom_idx.back() + 1);
  data::Example& e = loaded.features;
  e["id"] = std::string("page");
  e["long_token_ids"] = Numbers(word_idx.size(), 2);
  e["long_word_idx"] = word_idx;
  e["long_vdom_idx"] = vdom_idx;
  e["num_words"] = words;
  Numbers fonts, indicators;
  for (std::size_t i = 0; i < elements; ++i) {
    fonts.push_back(static_cast<std::int64_t>(i % 24));
    indicators.push_back(static_cast<std::int64_t>(37 * (i + 1) % 256));
  }
  e["font_ids"] = e["parent_font_ids"] = fonts;
  e["indicators"] = indicators;
  for (std::size_t c = 0; c < kCoordinates.size(); ++c) {
    e[kCoordinates[c]] = Floats(elements, static_cast<float>(100 * (c + 1)));
  }
  return loaded;
}

EtcConfig model(std::int64_t hidden) {
  EtcConfig config;
  config.hidden_size = hidden;
  config.initializer_range = 0.5;
  return config;
}

void set(Tensor& value, const Floats& values) {
  REQUIRE(value.size() == std::ssize(values));
  std::copy(values.begin(), values.end(), value.data());
}

void set(ParameterSet& parameters, const std::string& name, const Floats& values) {
  set(parameters.at(name).allocate(), values);
}

// The tolerance of golden values and gradients, which are rounded to float32 like ours.
constexpr double kRelative = 1e-5, kAbsolute = 1e-6;

// The worst difference to golden numbers in units of the tolerance.
double difference(const float* got, const Floats& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    test::keep_worst(worst, test::in_tolerances(got[i], expected[i], kAbsolute, kRelative));
  }
  return worst;
}

// The golden case "head": two pages of a golden configuration, parameters, values and gradients.
class GoldenHead {
 public:
  GoldenHead(const std::filesystem::path& decode, const std::filesystem::path& features)
      : file_(decode), features_(features), config_(file_.string_attribute("head", "config")) {
    const auto h = read("params/long_output");
    B = h.shape[0], L = h.shape[1], H = h.shape[2];
    G = read("visual_upstream_global").shape[1];
    K = read("ngram_logits").shape[1];
    for (const double row : file_.real_attributes("head", "record_row")) rows_.push_back(static_cast<std::size_t>(row));
    REQUIRE(std::ssize(rows_) == B);
    for (std::int64_t b = 0; b < B; ++b) {
      require_row(b);
      add_page(b);
    }
  }

  test::GoldenArray<float> read(const std::string& what) const { return file_.read<float>("head/" + what); }
  double loss() const { return file_.real_attribute("head", "loss"); }

  // The first counts[b] rows of every page b in a golden array [B, rows, H]; `padding`, if given, gets the others.
  Floats real_rows(const std::string& what, const Numbers& counts, Floats* padding = nullptr) const {
    const auto all = read(what);
    Floats real;
    for (std::int64_t b = 0; b < B; ++b) {
      const auto begin = all.values.begin() + b * all.shape[1] * H;
      const auto end = begin + counts[static_cast<std::size_t>(b)] * H;
      real.insert(real.end(), begin, end);
      if (padding != nullptr) padding->insert(padding->end(), end, begin + all.shape[1] * H);
    }
    return real;
  }

  void require_all_read() const {
    file_.require_all_read("head", {{"head@precision", "describes how the numbers were computed"}});
  }

  // The factor of each element's vector in the golden sum, plus the factors of its tokens, [B·G, H].
  Floats upstream() const {
    Floats sum = read("visual_upstream_global").values;
    const Floats of_long = read("visual_upstream_long").values;
    for (std::int64_t b = 0; b < B; ++b) {
      const Numbers owners = integers(b, "long_vdom_idx");
      for (std::int64_t i = 0; i < L * H; ++i) {
        const std::int64_t element = b * G + owners[static_cast<std::size_t>(i / H)];
        sum[static_cast<std::size_t>(element * H + i % H)] += of_long[static_cast<std::size_t>(b * L * H + i)];
      }
    }
    return sum;
  }

  Numbers integers(std::int64_t b, const std::string& feature) const { return row<std::int64_t>(b, feature); }

  std::int64_t B = 0, L = 0, G = 0, H = 0, K = 0;
  std::vector<data::LoadedExample> pages;   // padding left out
  std::vector<data::LoadedExample> padded;  // elements with their padding, whose gradients count in the golden case
  Numbers tokens, words;                    // [B]

 private:
  template <typename T>
  std::vector<T> row(std::int64_t b, const std::string& feature) const {
    return features_.read_ragged<T>(config_ + "/" + feature)[rows_[static_cast<std::size_t>(b)]];
  }

  // The page has the dense features and crosses of its record.
  void require_row(std::int64_t b) const {
    const auto same = [&](const std::string& name, std::int64_t size) {
      const Floats own = read(name).values, all = features_.read<float>(config_ + "/derived/" + name).values;
      const auto row = static_cast<std::int64_t>(rows_[static_cast<std::size_t>(b)]);
      REQUIRE(std::equal(own.begin() + b * size, own.begin() + (b + 1) * size, all.begin() + row * size));
    };
    same("global_dense_features", G * kDenseFeatures);
    same("global_indicator_cross", G);
  }

  std::int64_t ones(std::int64_t b, const std::string& mask) const {
    const Numbers m = integers(b, mask);
    return std::count(m.begin(), m.end(), 1);
  }

  Numbers indicators(std::int64_t b) const {
    Numbers all(static_cast<std::size_t>(G), 0);
    for (const auto& [flag, bit] : test::indicator_bits()) {
      const Numbers on = integers(b, "global_" + flag + "_indicator");
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += on[i] * bit;
    }
    return all;
  }

  void add_page(std::int64_t b) {
    tokens.push_back(ones(b, "long_input_mask"));
    words.push_back(ones(b, "long_word_input_mask"));
    const auto elements = static_cast<std::size_t>(ones(b, "global_input_mask"));
    data::LoadedExample loaded;
    data::Example& e = loaded.features;
    e["id"] = std::to_string(b);
    e["num_words"] = words.back();
    e["label_start_idx"] = integers(b, "label_start_idx");
    e["label_phrase_len"] = integers(b, "label_phrase_len");
    for (const char* feature : {"long_token_ids", "long_word_idx", "long_vdom_idx"}) {
      Numbers real = integers(b, feature);
      real.resize(static_cast<std::size_t>(tokens.back()));
      e[feature] = real;
    }
    for (const char* feature : kCoordinates) e[feature] = row<float>(b, "global_" + std::string(feature));
    for (const char* feature : {"font_ids", "parent_font_ids"})
      e[feature] = integers(b, "global_" + std::string(feature));
    e["indicators"] = indicators(b);
    padded.push_back(loaded);
    for (const char* feature : kCoordinates) std::get<Floats>(e[feature]).resize(elements);
    for (const char* feature : {"font_ids", "parent_font_ids", "indicators"}) {
      std::get<Numbers>(e[feature]).resize(elements);
    }
    pages.push_back(std::move(loaded));
  }

  test::GoldenFile file_, features_;
  std::string config_;
  std::vector<std::size_t> rows_;  // of the features' records
};

// "dense_feature_projection/kernel" is stored as dense_feature_projection_kernel, tables under their bare names.
std::string golden_name(const std::string& ours) {
  const std::string table = "/embedding_table";
  std::string golden = ours.ends_with(table) ? ours.substr(0, ours.size() - table.size()) : ours;
  std::replace(golden.begin(), golden.end(), '/', '_');
  return golden;
}

// The worst difference of the gradients of all parameters.
double gradient_difference(const GoldenHead& golden, const std::string& group, const ParameterSet& parameters) {
  double worst = 0;
  for (const auto& parameter : parameters.all()) {
    const std::string name = group + "/" + golden_name(parameter->name);
    CAPTURE(name);
    REQUIRE(parameter->grad);
    const Floats expected = golden.read(name).values;
    REQUIRE(parameter->grad.size() == std::ssize(expected));
    const double d = difference(parameter->grad.data(), expected);
    CHECK(d <= 1);
    test::keep_worst(worst, d);
  }
  return worst;
}

// Sums of each word's states and their layer norm, in double (task-openkp 4.2): the engine does not return them.
void require_word_vectors(const GoldenHead& golden) {
  const Floats states = golden.read("params/long_output").values,
               gamma = golden.read("params/word_emb_layer_norm_gamma").values,
               beta = golden.read("params/word_emb_layer_norm_beta").values;
  const std::int64_t H = golden.H, L = golden.L;
  std::vector<double> sums(states.size(), 0), normalised(states.size());
  for (std::int64_t b = 0; b < golden.B; ++b) {
    const Numbers words = golden.integers(b, "long_word_idx");
    for (std::int64_t i = 0; i < golden.tokens[static_cast<std::size_t>(b)] * H; ++i) {
      const std::int64_t word = b * L + words[static_cast<std::size_t>(i / H)];
      sums[static_cast<std::size_t>(word * H + i % H)] += states[static_cast<std::size_t>(b * L * H + i)];
    }
  }
  for (std::int64_t row = 0; row < golden.B * L; ++row) {
    const double* u = sums.data() + row * H;
    const double mean = std::accumulate(u, u + H, 0.0) / static_cast<double>(H);
    const double squares =
        std::accumulate(u, u + H, 0.0, [&](double s, double x) { return s + (x - mean) * (x - mean); });
    const double scale = 1 / std::sqrt(squares / static_cast<double>(H) + 1e-12);
    for (std::int64_t h = 0; h < H; ++h) {
      normalised[static_cast<std::size_t>(row * H + h)] =
          (u[h] - mean) * scale * gamma[static_cast<std::size_t>(h)] + beta[static_cast<std::size_t>(h)];
    }
  }
  CHECK(test::worst_difference(sums, golden.read("word_embeddings_sum").values, kAbsolute, kRelative) <= 1);
  CHECK(test::worst_difference(normalised, golden.read("word_embeddings").values, kAbsolute, kRelative) <= 1);
}

// Scores, loss and gradients of the head on the golden states; the worst differences.
std::pair<double, double> compare_head(const GoldenHead& golden, const Head& head, const ParameterSet& parameters) {
  Tape tape(Recording::on);
  const Floats states = golden.real_rows("params/long_output", golden.tokens);
  Var x(Tensor::from(states, {std::ssize(states) / golden.H, golden.H}, Purpose::activations), true);
  HeadOutput scores = head.scores(tape, x, golden.pages);
  const auto expected = golden.read("ngram_logits");
  double worst = 0, loss = 0;
  std::int64_t first = 0;
  for (std::int64_t b = 0; b < golden.B; ++b) {
    const data::Example& page = golden.pages[static_cast<std::size_t>(b)].features;
    const std::int64_t w = golden.words[static_cast<std::size_t>(b)];
    const Floats z = scores_of_page(scores, first, w);
    ScoringOptions options;
    options.longest_phrase = golden.K;
    options.parity_length = golden.L;
    const PhraseClasses classes = classes_of(page, z, options);
    // Phrases that reach beyond the page have -10000.
    const auto page_size = static_cast<std::size_t>(golden.K * golden.L);
    Floats padded(page_size, -10000);
    for (std::size_t i = 0; i < classes.entries.size(); ++i) {
      const std::int64_t entry = classes.entries[i];
      padded[static_cast<std::size_t>(entry / w * golden.L + entry % w)] = classes.scores[i];
    }
    const auto begin = expected.values.begin() + b * golden.K * golden.L;
    test::keep_worst(worst, difference(padded.data(), Floats(begin, begin + golden.K * golden.L)));
    Floats gradient(classes.entries.size());
    loss += loss_of(page, classes, options, 1.0 / static_cast<double>(golden.B), gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const std::int64_t entry = classes.entries[i];
      scores[static_cast<std::size_t>(entry / w)].grad().data()[first + entry % w] = gradient[i];
    }
    first += w;
  }
  CHECK(loss / static_cast<double>(golden.B) == Approx(golden.loss()).epsilon(1e-6));
  tape.backward();
  Floats of_padding;
  const Floats gradient_of_states = golden.real_rows("grad/long_output", golden.tokens, &of_padding);
  const double of_states = difference(x.grad().data(), gradient_of_states);
  CHECK(of_padding == Floats(of_padding.size(), 0));
  return {worst, std::max(of_states, gradient_difference(golden, "grad", parameters))};
}

// Visual vectors of elements and of their tokens, and gradients; the worst differences.
std::pair<double, double> compare_visual(const GoldenHead& golden, const VisualEmbedding& visual,
                                         const ParameterSet& parameters) {
  Tape tape(Recording::on);
  Var global = visual.forward(tape, golden.padded);
  double worst = difference(global.value().data(), golden.read("global_embedding_adder").values);
  const Floats upstream = golden.upstream();
  std::copy(upstream.begin(), upstream.end(), global.grad().data());
  tape.backward();
  Tape silent(Recording::off);
  const Var of_long = spread_segments(silent, visual.forward(silent, golden.pages), tokens_of_elements(golden.pages));
  Floats of_padding;
  const Floats vectors = golden.real_rows("long_embedding_adder", golden.tokens, &of_padding);
  test::keep_worst(worst, difference(of_long.value().data(), vectors));
  // Padding tokens have the vector of their page's first element.
  Floats firsts;
  for (std::int64_t b = 0; b < golden.B; ++b) {
    const float* first = global.value().data() + b * golden.G * golden.H;
    for (std::int64_t i = golden.tokens[static_cast<std::size_t>(b)]; i < golden.L; ++i) {
      firsts.insert(firsts.end(), first, first + golden.H);
    }
  }
  REQUIRE(firsts.size() == of_padding.size());
  test::keep_worst(worst, difference(firsts.data(), of_padding));
  return {worst, gradient_difference(golden, "visual_grad", parameters)};
}

}  // namespace

TEST_CASE("the head gives the worked scores", "[tasks][openkp]") {
  register_cpu_backend();
  ParameterSet parameters;
  const Head head(model(3), 2, parameters);
  for (const char* name : {"word_emb_layer_norm", "1gram_layer_norm", "2gram_layer_norm"}) {
    set(parameters, std::string(name) + "/gamma", {1, 1, 1});
    set(parameters, std::string(name) + "/beta", {0, 0, 0});
  }
  set(parameters, "1gram_conv/kernel", {1, 0, 0, 0, 1, 0, 0, 0, 1});
  set(parameters, "1gram_conv/bias", {0.1f, 0, -0.1f});
  set(parameters, "logit_dense0/kernel", {1, -1, 0.5f});
  set(parameters, "2gram_conv/kernel", {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 0, 0});
  set(parameters, "2gram_conv/bias", {0, 0.2f, 0});
  set(parameters, "logit_dense1/kernel", {0.5f, 0.5f, -1});
  const std::vector<data::LoadedExample> pages = {page({0, 1, 1, 2}, {0, 0, 0, 0}, 3)};
  Tape tape(Recording::off);
  const Var h(Tensor::from({1, 0, 2, 0, 1, -1, 2, 2, 0, -1, 1, 3}, {4, 3}, Purpose::activations));
  const HeadOutput scores = head.scores(tape, h, pages);
  const Floats z = scores_of_page(scores, 0, 3);
  const Floats expected = {1.08740394f, -1.87888677f, 0.40792778f, -2.12095106f, 1.15405652f};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(z[i] == Approx(expected[i]).epsilon(1e-5));
}

TEST_CASE("visual features are scaled and crossed as in the worked page", "[tasks][openkp]") {
  PrepareConfig config;
  config.long_max_length = 16;
  config.global_max_length = 4;
  const auto converted =
      OpenkpPreparation(config, test::small_vocabulary())
          .convert(test::raw_record(json_line(test::worked_page(test::worked_elements(), test::kWorkedPhrases))));
  const data::Example& e = converted.examples.at(0);
  const Floats expected = {
      -0.883870968f, -0.943801653f, -0.2f, -0.996f, -0.883870968f, -0.943801653f, -0.2f, -0.996f, 0, 0, 1, 0, 0};
  const Floats dense = dense_features(e);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(dense[i] == Approx(expected[i]).epsilon(1e-6));
  CHECK(indicator_crosses(e) == std::vector<std::int32_t>{6, 1, 0});
  data::Example far = e;
  far["x_coords"] = Floats{2000, -80, 40};
  CHECK(dense_features(far)[0] == 1);
  CHECK(dense_features(far)[kDenseFeatures] == -1);
}

TEST_CASE("kernels and tables start with a standard deviation of 0.02, whatever that of the model is",
          "[tasks][openkp]") {
  ParameterSet parameters;
  const Head head(model(64), 4, parameters);
  const VisualEmbedding visual(model(64), true, parameters);
  parameters.initialize(1);
  const auto deviation = [&](const std::string& name) {
    const Tensor& value = parameters.at(name).value;
    double squares = 0;
    for (std::int64_t i = 0; i < value.size(); ++i) squares += value.data()[i] * value.data()[i];
    return std::sqrt(squares / static_cast<double>(value.size()));
  };
  // Values beyond two standard deviations are drawn again, which narrows them.
  constexpr double kTruncated = 0.88;
  CHECK(deviation("1gram_conv/kernel") == Approx(0.02 * kTruncated).epsilon(0.1));
  CHECK(deviation("4gram_conv/kernel") == Approx(0.01 * kTruncated).epsilon(0.1));
  CHECK(deviation("dense_feature_layer2/kernel") == Approx(0.02 * kTruncated).epsilon(0.1));
  CHECK(deviation("font_id_emb_lookup/embedding_table") == Approx(0.02 * kTruncated).epsilon(0.1));
}

TEST_CASE("gradients of head and visual embedding are those of central differences", "[tasks][openkp]") {
  register_cpu_backend();
  // Two pages; the second has a word without tokens and fewer words than the longest phrase.
  const std::vector<data::LoadedExample> pages = {page({0, 0, 1, 2, 3, 3}, {0, 0, 0, 1, 1, 2}, 4),
                                                  page({0, 2}, {0, 0}, 3)};
  for (const bool extra : {true, false}) {
    ParameterSet parameters;
    const Head head(model(4), 3, parameters);
    const VisualEmbedding visual(model(4), extra, parameters);
    parameters.initialize(3);
    // Larger kernels, so that every layer moves the scores.
    // A word without tokens is a row equal to beta. If beta and a convolution's bias were zero, the next layer norm
    // would get a constant row, where it has no derivative.
    std::vector<Parameter*> all;
    for (const auto& parameter : parameters.all()) {
      all.push_back(parameter.get());
      if (parameter->shape.size() > 1) {
        for (std::int64_t i = 0; i < parameter->value.size(); ++i) parameter->value.data()[i] *= 25;
        continue;
      }
      const Tensor noise = test::noise(parameter->shape, 11);
      for (std::int64_t i = 0; i < noise.size(); ++i) parameter->value.data()[i] += noise.data()[i];
    }
    test::check_gradients(
        [&](Tape& on, const std::vector<Var>& in) {
          const Var v = visual.forward(on, pages);
          const Var x = residual(on, in[0], spread_segments(on, v, tokens_of_elements(pages)), Dropout());
          HeadOutput results = head.scores(on, x, pages);
          results.push_back(v);
          return results;
        },
        {test::noise({8, 4}, 5)}, all, 5e-3, 3e-3f);
  }
}

TEST_CASE("head and visual embedding equal the golden case, values and gradients", "[tasks][openkp][golden]") {
  register_cpu_backend();
  const auto files = test::golden_named("openkp_decode", ".h5");
  if (files.empty()) return test::skip("no golden file openkp_decode*.h5");
  for (const auto& path : files) {
    const std::string name = path.filename().string();
    CAPTURE(name);
    const GoldenHead golden(path, test::openkp_features_beside(path));
    const auto dense = golden.read("global_dense_features");
    const auto crosses = golden.read("global_indicator_cross");
    Floats our_dense, our_crosses;
    for (const data::LoadedExample& page : golden.padded) {
      for (const float value : dense_features(page.features)) our_dense.push_back(value);
      for (const std::int32_t cross : indicator_crosses(page.features))
        our_crosses.push_back(static_cast<float>(cross));
    }
    REQUIRE(our_dense.size() == dense.values.size());
    CHECK(difference(our_dense.data(), dense.values) <= 1);
    CHECK(our_crosses == crosses.values);
    require_word_vectors(golden);

    ParameterSet of_head, of_visual;
    const Head head(model(golden.H), golden.K, of_head);
    const VisualEmbedding visual(model(golden.H), true, of_visual);
    for (const ParameterSet* parameters : {&of_head, &of_visual}) {
      for (const auto& parameter : parameters->all()) {
        set(parameter->allocate(), golden.read("params/" + golden_name(parameter->name)).values);
      }
    }
    const auto [value, gradient] = compare_head(golden, head, of_head);
    const auto [visual_value, visual_gradient] = compare_visual(golden, visual, of_visual);
    CHECK(std::max(value, visual_value) <= 1);
    CHECK(std::max(gradient, visual_gradient) <= 1);
    golden.require_all_read();
    fmt::print("{}: head: worst value {:.2g}, worst gradient {:.2g}, of the tolerance\n", name,
               std::max(value, visual_value), std::max(gradient, visual_gradient));
  }
}
