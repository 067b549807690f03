// Runs a case through the operators and through the double-precision reference, and compares.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/cases/attention.h"
#include "etc_core/base/not_copied.h"
#include "etc_core/base/parallel.h"
#include "sparse/score_state.h"
#include "tests/reference/attention.h"

namespace etc::test {

using bench::AttentionCase;
using bench::AttentionProblem;
using bench::Labels;
using bench::Side;
using bench::Structure;

// Shapes and structures that break careless kernels; every backend runs them.
const std::vector<AttentionCase>& attention_cases();

// Cases of relative terms beyond rel and rel_bias, of tables that heads share, of labels by distance and of a scale.
const std::vector<AttentionCase>& term_cases();

std::string describe(const AttentionCase& attention_case, Side side);

// The problem's inputs in double. Dropout bits come from etc_core/base/random.h, whose promise kernels must keep.
reference::Attention reference_of(const AttentionProblem& problem);

// A stack of layers of one operator, with running scores for some types.
struct Stack {
  AttentionCase attention_case;
  Side side = Side::long_side;
  std::int64_t layers = 1;
  std::vector<bool> types;  // which carry, by index
  bool running_mean = false;
  bool recompute = false;  // run every layer's forward again, in mode read, right before its backward
  Device device = Device::cpu;
  bool bf16 = false;  // products are of bf16: inputs are rounded to it, tolerances allow for rounded probabilities
};

// What the operators gave, layer by layer.
struct StackResult {
  std::shared_ptr<const Structure> structure;
  std::vector<std::unique_ptr<AttentionProblem>> layers;
  std::vector<std::array<std::vector<float>, 2>> running;  // C after each layer's forward, external form
  std::array<std::vector<float>, 2> gradient;              // dC at the end
};

// Forward through all layers, backward through all layers (each with a dout of its own).
StackResult run_stack(const Stack& stack);

// Compares a stack with the reference: outputs, log-sum-exps, running scores at visible pairs, all gradients. Returns
// an empty string, or the worst place with both values, the tolerance and the case.
std::string compare_with_reference(const Stack& stack, const StackResult& result);

// Runs loops on one thread while it lives: many small cases on a busy machine wait for each other otherwise.
class OneThread : NotCopied {
 public:
  OneThread() : before_(thread_count()) { set_thread_count(1); }
  ~OneThread() { set_thread_count(before_); }

 private:
  int before_;
};

// Bytes equal?
bool same_bits(const Buffer<float>& a, const Buffer<float>& b);

// The names of the results (outputs and all gradients) in which two runs of one problem differ in any bit; empty: none.
std::string different_results(const AttentionProblem& a, const AttentionProblem& b);

}  // namespace etc::test
