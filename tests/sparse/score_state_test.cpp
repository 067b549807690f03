// Running scores through layers: recomputation, subsets of types, the order of calls.
#include "sparse/register_cpu.h"
#include "tests/sparse/attention_support.h"
#include "tests/support/catch.h"

using namespace etc;
using namespace etc::test;
using Catch::Matchers::Contains;
using sparse::AttentionType;
using sparse::ScoreState;

namespace {

const AttentionCase kCase{"two documents", {50, 21}, {18, 5}, 6, 2, 8, 10, Labels::scattered};

bool same_results(const StackResult& a, const StackResult& b) {
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    const AttentionProblem &p = *a.layers[l], &q = *b.layers[l];
    for (int t = 0; t < 2; ++t) {
      if (!same_bits(p.dk[t].values, q.dk[t].values) || !same_bits(p.dv[t].values, q.dv[t].values)) return false;
    }
    if (!same_bits(p.out.values, q.out.values) || !same_bits(p.lse, q.lse) || !same_bits(p.dq.values, q.dq.values) ||
        !same_bits(p.drel, q.drel) || !same_bits(p.drel_bias, q.drel_bias)) {
      return false;
    }
  }
  return a.running == b.running && a.gradient == b.gradient;
}

// A small state over both operators of kCase, with the arguments of one call each.
struct StateFixture {
  Structure structure{kCase};
  ScoreState state;
  sparse::LongAttentionForward long_forward;
  sparse::LongAttentionBackward long_backward;
  sparse::GlobalAttentionForward global_forward;
  sparse::GlobalAttentionBackward global_backward;

  explicit StateFixture(sparse::ScoreOptions options) : state(options, structure.long_tiles, structure.global_tiles) {}
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
        for (int t = 0; t < sparse::kAttentionTypes; ++t) stack.types[static_cast<std::size_t>(t)] = (subset >> t) & 1;
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
  ScoreState state(training(12), structure->long_tiles, structure->global_tiles);
  std::vector<std::unique_ptr<AttentionProblem>> layers;
  std::vector<float> first, back;
  const auto size = static_cast<std::size_t>(sparse::external_score_elements(structure->long_tiles.l2l, kCase.heads));
  first.resize(size);
  back.resize(size);
  for (std::uint32_t l = 0; l < 12; ++l) {
    layers.push_back(std::make_unique<AttentionProblem>(kCase, structure, Side::long_side, l));
    sparse::LongAttentionForward args;
    state.forward(l, args);
    layers.back()->forward(args.l2l, args.l2g);
    if (l == 0) state.export_running(AttentionType::l2l, first.data());
  }
  for (std::int64_t l = 11; l >= 1; --l) {
    sparse::LongAttentionBackward args;
    state.backward(l, args);
    layers[static_cast<std::size_t>(l)]->backward(args.l2l, args.l2g);
  }
  state.export_running(AttentionType::l2l, back.data());
  CHECK(first == back);
}

TEST_CASE("one state serves micro-batch after micro-batch, and two states live side by side", "[sparse]") {
  sparse::register_cpu_kernels();
  const auto structure = std::make_shared<const Structure>(kCase);
  const auto problem = [&](std::uint32_t layer) {
    return std::make_unique<AttentionProblem>(kCase, structure, Side::long_side, layer);
  };
  const auto forward = [](ScoreState& state, AttentionProblem& p) {
    sparse::LongAttentionForward args;
    state.forward(p.layer, args);
    p.forward(args.l2l, args.l2g);
  };
  const auto backward = [](ScoreState& state, AttentionProblem& p) {
    sparse::LongAttentionBackward args;
    state.backward(p.layer, args);
    p.backward(args.l2l, args.l2g);
  };
  ScoreState state(training(2), structure->long_tiles, structure->global_tiles);
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

  // Two forwards before one backward: each encoder forward has a state of its own.
  ScoreState other(training(2), structure->long_tiles, structure->global_tiles);
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
      f.state.forward(1, f.long_forward),
      Contains("long_attention: forward of layer 1: expected the running scores of layer 0, they hold layer -1"));
  f.state.forward(0, f.long_forward);
  CHECK_THROWS_WITH(f.state.forward(0, f.long_forward), Contains("they hold layer 0"));
  CHECK_THROWS_WITH(f.state.backward(0, f.long_backward),
                    Contains("backward of layer 0: the running scores hold layer 0"));
  f.state.forward(0, f.global_forward);  // the other operator has its own place
  f.state.forward(1, f.long_forward);
  f.state.forward(2, f.long_forward);
  CHECK_THROWS_WITH(f.state.forward(3, f.long_forward), Contains("expected a layer below 3"));
  CHECK_THROWS_WITH(f.state.recompute(1, f.long_forward),
                    Contains("recomputation of layer 1: the running scores hold layer 2"));
  f.state.recompute(2, f.long_forward);
  f.state.backward(2, f.long_backward);
  CHECK_THROWS_WITH(f.state.backward(2, f.long_backward),
                    Contains("backward of layer 2: the running scores hold layer 1"));
  CHECK_THROWS_WITH(f.state.forward(2, f.long_forward), Contains("and backward has begun"));
  f.state.backward(1, f.long_backward);
  f.state.backward(0, f.long_backward);
  CHECK_THROWS_WITH(f.state.backward(0, f.long_backward), Contains("hold layer -1"));
  CHECK_NOTHROW(f.state.forward(0, f.long_forward));

  sparse::ScoreOptions inference = training(2);
  inference.training = false;
  StateFixture g(inference);
  g.state.forward(0, g.global_forward);
  g.state.forward(1, g.global_forward);
  CHECK(g.global_forward.g2l.mode == sparse::ScoreMode::add_unkept);
  CHECK_THROWS_WITH(g.state.forward(0, g.global_forward), Contains("the last layer has run"));
  CHECK_THROWS_WITH(g.state.backward(0, g.global_backward), Contains("made for inference"));
  CHECK_THROWS_WITH(g.state.export_gradient(AttentionType::g2g, nullptr), Contains("no gradient is kept"));
  CHECK_THROWS_WITH(StateFixture(training(0)), Contains("at least 1 layer and 1 head"));
}

TEST_CASE("types that are switched off neither carry nor divide", "[sparse]") {
  sparse::ScoreOptions options = training(2);
  options.types = {true, false, false, true};
  options.running_mean = true;
  StateFixture f(options);
  f.state.forward(0, f.long_forward);
  f.state.forward(1, f.long_forward);
  CHECK(f.long_forward.l2l.mode == sparse::ScoreMode::add);
  CHECK(f.long_forward.l2l.logit_scale == 0.5f);
  CHECK(f.long_forward.l2g.mode == sparse::ScoreMode::none);
  CHECK(f.long_forward.l2g.logit_scale == 1.0f);
  std::vector<float> nothing;
  CHECK_THROWS_WITH(f.state.export_running(AttentionType::l2g, nothing.data()), Contains("carries no scores"));
  f.state.backward(1, f.long_backward);
  CHECK(f.long_backward.l2l.rewind);
  CHECK(f.long_backward.l2l.mode == sparse::ScoreGradientMode::first);
  f.state.backward(0, f.long_backward);
  CHECK_FALSE(f.long_backward.l2l.rewind);
  CHECK(f.long_backward.l2l.mode == sparse::ScoreGradientMode::inner);
  CHECK(f.long_backward.l2g.mode == sparse::ScoreGradientMode::none);
}

TEST_CASE("one layer with scores writes them in inference as in training, so that bits are the same", "[sparse]") {
  sparse::register_cpu_kernels();
  sparse::ScoreOptions inference = training(1);
  inference.training = false;
  StateFixture f(inference);
  f.state.forward(0, f.long_forward);
  CHECK(f.long_forward.l2l.mode == sparse::ScoreMode::write);
}

TEST_CASE("imported scores are where the layer after them continues", "[sparse]") {
  sparse::register_cpu_kernels();
  const auto structure = std::make_shared<const Structure>(kCase);
  ScoreState whole(training(2), structure->long_tiles, structure->global_tiles);
  AttentionProblem p0(kCase, structure, Side::global_side, 0), p1(kCase, structure, Side::global_side, 1);
  sparse::GlobalAttentionForward args;
  whole.forward(0, args);
  p0.forward(args.g2g, args.g2l);
  std::array<std::vector<float>, sparse::kAttentionTypes> external;
  std::array<const float*, sparse::kAttentionTypes> pointers{};
  for (int t = 0; t < sparse::kAttentionTypes; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const auto type = static_cast<AttentionType>(t);
    external[at].assign(static_cast<std::size_t>(sparse::external_score_elements(structure->tiles(type), kCase.heads)),
                        0.0f);
    if (t >= 2) whole.export_running(type, external[at].data());
    pointers[at] = external[at].data();
  }
  whole.forward(1, args);
  p1.forward(args.g2g, args.g2l);
  Buffer<float> out(p1.out.values.size(), Purpose::scratch);
  std::copy(p1.out.values.begin(), p1.out.values.end(), out.begin());

  ScoreState resumed(training(2), structure->long_tiles, structure->global_tiles);
  resumed.import_running(0, pointers);
  resumed.forward(1, args);
  p1.forward(args.g2g, args.g2l);
  CHECK(same_bits(out, p1.out.values));
  pointers[3] = nullptr;
  CHECK_THROWS_WITH(resumed.import_running(0, pointers), Contains("scores.g2l: import: expected values, got null"));
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
  // Without running scores there is no range to leave.
  CHECK_NOTHROW(run_stack({c, Side::long_side, 1, {}, false, false}));

  const auto structure = std::make_shared<const Structure>(kCase);
  ScoreState state(training(1), structure->long_tiles, structure->global_tiles);
  AttentionProblem p(kCase, structure, Side::long_side, 0);
  p.k[1].values[0] = std::numeric_limits<float>::quiet_NaN();
  sparse::LongAttentionForward args;
  state.forward(0, args);
  CHECK_THROWS_WITH(p.forward(args.l2l, args.l2g), Contains("long_attention: scores.l2g: layer 0"));
}
