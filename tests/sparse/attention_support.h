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

// Edge cases of shapes and structures; every backend runs them.
const std::vector<AttentionCase>& attention_cases();

// Cases with relative terms other than rel and rel_bias, tables shared by heads, labels by distance, and a given scale.
const std::vector<AttentionCase>& term_cases();

std::string describe(const AttentionCase& attention_case, Side side);

// The problem's inputs in double. Dropout bits come from etc_core/base/random.h; kernels must reproduce them.
reference::Attention reference_of(const AttentionProblem& problem);

// A stack of layers of one operator, with running scores for some types.
struct Stack {
  AttentionCase attention_case;
  Side side = Side::long_side;
  std::int64_t layers = 1;
  std::vector<bool> types;  // which types carry scores, by index
  bool running_mean = false;
  bool recompute = false;  // run every layer's forward again, in mode read, right before its backward
  Device device = Device::cpu;
  bool bf16 = false;  // bf16 products: inputs are rounded to bf16, tolerances allow for rounded probabilities
};

// Results of the operators, layer by layer.
struct StackResult {
  std::shared_ptr<const Structure> structure;
  std::vector<std::unique_ptr<AttentionProblem>> layers;
  std::vector<std::array<std::vector<float>, 2>> running;  // C after each layer's forward, external form
  std::array<std::vector<float>, 2> gradient;              // dC at the end
};

// Forward through all layers, then backward through all layers (each layer has its own dout).
StackResult run_stack(const Stack& stack);

// Compares a stack with the reference: outputs, log-sum-exps, running scores at visible pairs, all gradients. Returns
// an empty string, or the worst place with both values, the tolerance and the case.
std::string compare_with_reference(const Stack& stack, const StackResult& result);

// Runs loops on one thread during its lifetime; with several threads small cases would spend their time waiting on a
// busy machine.
class OneThread : NotCopied {
 public:
  OneThread() : before_(thread_count()) { set_thread_count(1); }
  ~OneThread() { set_thread_count(before_); }

 private:
  int before_;
};

// Whether the bytes are equal.
bool same_bits(const Buffer<float>& a, const Buffer<float>& b);

// The names of the results (outputs and all gradients) in which two runs of one problem differ in any bit; empty: none.
std::string different_results(const AttentionProblem& a, const AttentionProblem& b);

}  // namespace etc::test
