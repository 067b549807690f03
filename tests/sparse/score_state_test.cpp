// Running scores through layers: recomputation, subsets of types, the order of calls.
#include "sparse/register_cpu.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"
#include "tests/support/import_scores.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using sparse::ScoreState;

namespace {

const AttentionCase kCase{"two documents", {50, 21}, {18, 5}, 6, 2, 8, 10, Labels::scattered};

bool same_results(const StackResult& a, const StackResult& b) {
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    if (!different_results(*a.layers[l], *b.layers[l]).empty()) return false;
  }
  return a.running == b.running && a.gradient == b.gradient;
}

// A small state over both operators of kCase.
struct StateFixture {
  Structure structure{kCase};
  ScoreState state;

  explicit StateFixture(const sparse::ScoreOptions& options) : state(options, structure.operators()) {}
};

sparse::ScoreOptions training(std::int64_t layers) {
  return {layers, kCase.heads, {true, true, true, true}, false, true, false};
}

}  // namespace

TEST_CASE("every subset of types, sum and mean, equals the reference", "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  const AttentionCase c{"small documents", {34, 9}, {17, 3}, 5, 1, 4, 9, Labels::scattered};
  for (int subset = 0; subset < 16; ++subset) {
    for (bool mean : {false, true}) {
      for (Side side : {Side::long_side, Side::global_side}) {
        Stack stack{c, side, 3, {}, mean, false};
        for (std::size_t t = 0; t < sparse::kEtcTypes.size(); ++t) stack.types.push_back((subset >> t & 1) != 0);
        INFO("subset " << subset << (mean ? ", mean" : ", sum"));
        CHECK(compare_with_reference(stack, run_stack(stack)) == "");
      }
    }
  }
}

TEST_CASE("recomputing layers from the running scores changes no bit", "[sparse]") {
  sparse::register_cpu_kernels();
  const OneThread one_thread;
  for (float dropout : {0.0f, 0.2f}) {
    for (bool mean : {false, true}) {
      for (Side side : {Side::long_side, Side::global_side}) {
        AttentionCase c = kCase;
        c.dropout = dropout;
        Stack stack{c, side, 5, {true, true, true, true}, mean, false};
        const StackResult kept = run_stack(stack);
        stack.recompute = true;
        CHECK(same_results(kept, run_stack(stack)));
        stack.types = {true, false, false, true};
        stack.recompute = false;
        const StackResult partly = run_stack(stack);
        stack.recompute = true;
        CHECK(same_results(partly, run_stack(stack)));
      }
    }
  }
}

TEST_CASE("backward walks the running scores back to the first layer's, bit by bit", "[sparse]") {
  sparse::register_cpu_kernels();
  const auto structure = std::make_shared<const Structure>(kCase);
  ScoreState state(training(12), structure->operators());
  std::vector<std::unique_ptr<AttentionProblem>> layers;
  std::vector<float> first, back;
  const auto size =
      static_cast<std::size_t>(sparse::external_score_elements(structure->tiles(sparse::kL2l), kCase.heads));
  first.resize(size);
  back.resize(size);
  for (std::uint32_t l = 0; l < 12; ++l) {
    layers.push_back(std::make_unique<AttentionProblem>(kCase, structure, Side::long_side, l));
    const auto scores = state.forward(l, sparse::kLongAttention);
    layers.back()->forward(scores[0], scores[1]);
    if (l == 0) state.export_running(sparse::kL2l, first.data());
  }
  for (std::int64_t l = 11; l >= 1; --l) {
    const auto scores = state.backward(l, sparse::kLongAttention);
    layers[static_cast<std::size_t>(l)]->backward(scores[0], scores[1]);
  }
  state.export_running(sparse::kL2l, back.data());
  CHECK(first == back);
}

TEST_CASE("one state serves micro-batch after micro-batch, and two states live side by side", "[sparse]") {
  sparse::register_cpu_kernels();
  const auto structure = std::make_shared<const Structure>(kCase);
  const auto problem = [&](std::uint32_t layer) {
    return std::make_unique<AttentionProblem>(kCase, structure, Side::long_side, layer);
  };
  const auto forward = [](ScoreState& state, AttentionProblem& p) {
    const auto scores = state.forward(p.layer, sparse::kLongAttention);
    p.forward(scores[0], scores[1]);
  };
  const auto backward = [](ScoreState& state, AttentionProblem& p) {
    const auto scores = state.backward(p.layer, sparse::kLongAttention);
    p.backward(scores[0], scores[1]);
  };
  ScoreState state(training(2), structure->operators());
  auto p0 = problem(0), p1 = problem(1);
  Buffer<float> dq(p0->dq.values.size(), Purpose::scratch);
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    forward(state, *p0);
    forward(state, *p1);
    backward(state, *p1);
    backward(state, *p0);
    if (micro_batch == 0) std::copy(p0->dq.values.begin(), p0->dq.values.end(), dq.begin());
    CHECK(same_bits(dq, p0->dq.values));
  }

  // Two forwards before one backward: each encoder forward has its own state.
  ScoreState other(training(2), structure->operators());
  auto o0 = problem(0), o1 = problem(1);
  forward(state, *p0);
  forward(other, *o0);
  forward(state, *p1);
  forward(other, *o1);
  backward(other, *o1);
  backward(state, *p1);
  backward(state, *p0);
  backward(other, *o0);
  CHECK(same_bits(dq, p0->dq.values));
  CHECK(same_bits(dq, o0->dq.values));
}

TEST_CASE("calls out of order are errors that say what is held", "[sparse]") {
  StateFixture f(training(3));
  CHECK_THROWS_WITH(
      f.state.forward(1, sparse::kLongAttention),
      Contains("long_attention: forward of layer 1: expected the running scores of layer 0, they hold layer -1"));
  f.state.forward(0, sparse::kLongAttention);
  CHECK_THROWS_WITH(f.state.forward(0, sparse::kLongAttention), Contains("they hold layer 0"));
  CHECK_THROWS_WITH(f.state.backward(0, sparse::kLongAttention),
                    Contains("backward of layer 0: the running scores hold layer 0"));
  f.state.forward(0, sparse::kGlobalAttention);  // the other operator's layer is tracked separately
  f.state.forward(1, sparse::kLongAttention);
  f.state.forward(2, sparse::kLongAttention);
  CHECK_THROWS_WITH(f.state.forward(3, sparse::kLongAttention), Contains("expected a layer below 3"));
  CHECK_THROWS_WITH(f.state.recompute(1, sparse::kLongAttention),
                    Contains("recomputation of layer 1: the running scores hold layer 2"));
  f.state.recompute(2, sparse::kLongAttention);
  f.state.backward(2, sparse::kLongAttention);
  CHECK_THROWS_WITH(f.state.backward(2, sparse::kLongAttention),
                    Contains("backward of layer 2: the running scores hold layer 1"));
  CHECK_THROWS_WITH(f.state.forward(2, sparse::kLongAttention), Contains("and backward has begun"));
  f.state.backward(1, sparse::kLongAttention);
  f.state.backward(0, sparse::kLongAttention);
  CHECK_THROWS_WITH(f.state.backward(0, sparse::kLongAttention), Contains("hold layer -1"));
  CHECK_NOTHROW(f.state.forward(0, sparse::kLongAttention));

  sparse::ScoreOptions inference = training(2);
  inference.training = false;
  StateFixture g(inference);
  g.state.forward(0, sparse::kGlobalAttention);
  CHECK(g.state.forward(1, sparse::kGlobalAttention)[1].mode == sparse::ScoreMode::add_unkept);
  CHECK_THROWS_WITH(g.state.forward(0, sparse::kGlobalAttention), Contains("the last layer has run"));
  CHECK_THROWS_WITH(g.state.backward(0, sparse::kGlobalAttention), Contains("made for inference"));
  CHECK_THROWS_WITH(g.state.export_gradient(sparse::kG2g, nullptr), Contains("no gradient is kept"));
  CHECK_THROWS_WITH(StateFixture(training(0)), Contains("at least 1 layer and 1 head"));
}

TEST_CASE("a state knows the operators whose tiles it was made with, and no others", "[sparse]") {
  // Another model's operator with its own types, numbered from 0 as in every model.
  static constexpr sparse::AttentionOperator kSelf{"self_attention",
                                                   "self_attention bf16",
                                                   "self_attention_backward",
                                                   {{0, "self"}, {1, "memory"}},
                                                   DropoutSite::long_attention,
                                                   sparse::Partition::queries};
  Structure structure(kCase);
  sparse::AttentionTiles tiles = std::move(structure.long_tiles);
  tiles.op = &kSelf;
  for (int t = 0; t < sparse::kKeySets; ++t) tiles.types[t].type = kSelf.types[t];
  ScoreState state({2, kCase.heads, {true}, false, true, false}, {&tiles});
  const auto scores = state.forward(0, kSelf);
  CHECK(scores[0].mode == sparse::ScoreMode::write);
  CHECK(scores[1].mode == sparse::ScoreMode::none);
  CHECK(state.carries(kSelf.types[0]));
  CHECK_THROWS_WITH(state.export_running(kSelf.types[1], nullptr), Contains("scores.memory: this type carries no"));
  CHECK_THROWS_WITH(state.forward(0, sparse::kLongAttention),
                    Contains("long_attention: expected an operator whose tiles the state was made with"));
}

TEST_CASE("types that are switched off neither carry nor divide", "[sparse]") {
  sparse::ScoreOptions options = training(2);
  options.types = {true, false, false, true};
  options.running_mean = true;
  StateFixture f(options);
  f.state.forward(0, sparse::kLongAttention);
  const auto second = f.state.forward(1, sparse::kLongAttention);  // l2l, l2g
  CHECK(second[0].mode == sparse::ScoreMode::add);
  CHECK(second[0].logit_scale == 0.5f);
  CHECK(second[1].mode == sparse::ScoreMode::none);
  CHECK(second[1].logit_scale == 1.0f);
  std::vector<float> nothing;
  CHECK_THROWS_WITH(f.state.export_running(sparse::kL2g, nothing.data()), Contains("carries no scores"));
  auto back = f.state.backward(1, sparse::kLongAttention);
  CHECK(back[0].rewind);
  CHECK(back[0].mode == sparse::ScoreGradientMode::first);
  back = f.state.backward(0, sparse::kLongAttention);
  CHECK_FALSE(back[0].rewind);
  CHECK(back[0].mode == sparse::ScoreGradientMode::inner);
  CHECK(back[1].mode == sparse::ScoreGradientMode::none);
}

TEST_CASE("one layer with scores writes them in inference as in training, so that bits are the same", "[sparse]") {
  sparse::register_cpu_kernels();
  sparse::ScoreOptions inference = training(1);
  inference.training = false;
  StateFixture f(inference);
  CHECK(f.state.forward(0, sparse::kLongAttention)[0].mode == sparse::ScoreMode::write);
}

TEST_CASE("exported scores, put back, are where the layer after them continues", "[sparse]") {
  sparse::register_cpu_kernels();
  const auto structure = std::make_shared<const Structure>(kCase);
  ScoreState whole(training(2), structure->operators());
  AttentionProblem p0(kCase, structure, Side::global_side, 0), p1(kCase, structure, Side::global_side, 1);
  const auto run = [](ScoreState& state, AttentionProblem& p) {
    const auto scores = state.forward(p.layer, sparse::kGlobalAttention);
    p.forward(scores[0], scores[1]);
  };
  run(whole, p0);
  std::vector<std::vector<float>> external;
  for (const sparse::AttentionType& type : sparse::kEtcTypes) {
    const std::int64_t size = sparse::external_score_elements(structure->tiles(type), kCase.heads);
    external.emplace_back(static_cast<std::size_t>(size), 0.0f);
    if (type == sparse::kG2g || type == sparse::kG2l) whole.export_running(type, external.back().data());
  }
  run(whole, p1);
  Buffer<float> out(p1.out.values.size(), Purpose::scratch);
  std::copy(p1.out.values.begin(), p1.out.values.end(), out.begin());

  ScoreState resumed(training(2), structure->operators());
  test::import_running(resumed, structure->operators(), kCase.heads, 0, external);
  run(resumed, p1);
  CHECK(same_bits(out, p1.out.values));
}

TEST_CASE("scores out of range are an error naming layer and type", "[sparse]") {
  sparse::register_cpu_kernels();
  AttentionCase c = kCase;
  c.magnitude = 40.0f;
  for (Side side : {Side::long_side, Side::global_side}) {
    const Stack stack{c, side, 3, {true, true, true, true}, false, false};
    CHECK_THROWS_WITH(run_stack(stack),
                      Contains("layer 0: expected scores and running sums of at most 1024 in magnitude"));
  }
  // Without running scores there is no range limit.
  CHECK_NOTHROW(run_stack({c, Side::long_side, 1, {}, false, false}));

  const auto structure = std::make_shared<const Structure>(kCase);
  ScoreState state(training(1), structure->operators());
  AttentionProblem p(kCase, structure, Side::long_side, 0);
  p.k[1].values[0] = std::numeric_limits<float>::quiet_NaN();
  const auto scores = state.forward(0, sparse::kLongAttention);
  CHECK_THROWS_WITH(p.forward(scores[0], scores[1]), Contains("long_attention: scores.l2g: layer 0"));
}
