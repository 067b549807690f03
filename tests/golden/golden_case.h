// Golden files of the model: their inputs as encoder inputs, their weights as parameters, and comparisons that record
// the worst difference.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "etc_core/nn/encoder_input.h"
#include "etc_core/nn/etc_config.h"
#include "etc_core/nn/etc_encoder.h"
#include "etc_core/nn/parameters.h"
#include "tests/support/golden_h5.h"

namespace etc::test {

// Golden HDF5 files of this kind; prints "skipped" when there are none.
std::vector<std::filesystem::path> model_files(const std::string& kind);

// All data sets below a group, as paths relative to it ("etc_document_bert/long_emb_layer_norm/gamma").
std::vector<std::string> data_sets_below(const GoldenFile& file, const std::string& group);

// The masks and ids of a file's `inputs`, unchanged; empty vectors if absent.
struct GoldenMasks {
  std::int64_t batch = 0, length = 0, globals = 0, window = 0;
  std::vector<std::int32_t> l2l, l2g, g2g, g2l;                  // masks
  std::vector<std::int32_t> l2l_ids, l2g_ids, g2g_ids, g2l_ids;  // relative ids

  GoldenMasks(const GoldenFile& file, const std::string& group, std::int64_t radius, std::int64_t batch,
              std::int64_t length, std::int64_t globals);
  sparse::AttentionLabels labels(std::int64_t radius, std::int64_t relative_labels) const;
  GoldenMasks example(std::int64_t b) const;  // of one example

  // Whether the pair counts in a comparison of scores: visible and inside the sequence.
  bool allowed(const std::string& type, std::int64_t b, std::int64_t query, std::int64_t column) const;
  // Whether no key is visible for this query; for these our output is defined differently (etc-core 5.1).
  bool fully_masked(bool global, std::int64_t b, std::int64_t query) const;

 private:
  GoldenMasks() = default;
};

// A file of kind `etc` or `train`: B examples of exactly L long and G global tokens, padding and packing included.
struct GoldenCase {
  explicit GoldenCase(const std::filesystem::path& path);

  GoldenFile file;
  EtcConfig config;
  std::int64_t batch = 0, length = 0, globals = 0;
  GoldenMasks masks;

  // All examples, or example `only`.
  EncoderInput input(std::optional<std::int64_t> only = std::nullopt) const;
};

// Fills every parameter from the data sets below the group; parameters and data sets must correspond one to one.
void load_golden_weights(const GoldenFile& file, const std::string& group, ParameterSet& parameters);

// The quantity in float64 if the file has it (group "outputs64"), otherwise in float32 (group "outputs").
GoldenArray<double> best_reference(const GoldenFile& file, const std::string& prefix, const std::string& group,
                                   const std::string& name);

// The worst difference of many comparisons, and its location.
struct Worst {
  double value = 0;
  std::string where;

  void see(double difference, const std::string& place);
  // Compares element by element; `counts` selects the elements (null: all); differences are divided by `scale`.
  void compare(const std::string& name, const std::vector<double>& expected, const float* actual, double scale = 1,
               const std::function<bool(std::int64_t)>& counts = nullptr);
};

inline constexpr double kOutputTolerance = 1e-5;

// Throws Error unless the model's output has the same number of elements as the file's.
void require_size(const GoldenFile& file, const std::string& name, std::size_t expected, std::int64_t actual);

// Compares one of a model's outputs with the file's in both precisions of the file; Error on another size.
void compare_output(Worst& worst, const GoldenFile& file, const std::string& name, const float* actual,
                    std::int64_t size, const std::function<bool(std::int64_t)>& counts = nullptr);

// If all columns of a softmax share one key projection, the gradient of its bias is exactly zero, since the bias shifts whole
// rows (etc-core 13, invariant 36). In floating point it is the rounding error of sums that cancel, which optimisers without
// bias correction amplify (trap 19), so trained weights are compared without these biases.
bool is_shared_key_bias(const std::string& name, bool share_kv, bool share_qkv);

// Numbers by the file's tensor names.
using NamedNumbers = std::map<std::string, std::vector<float>>;

// Compares gradients with the file's, every tensor relative to its own largest number. Throws Error when a tensor exists on
// one side only.
//
// The gradient of a bias is a sum over tokens of the terms that its kernel's gradient multiplies with x, and may cancel to
// zero (is_shared_key_bias). Its rounding error is then that of the terms, 2^-24 · sqrt(tokens) · |term| for each rounding
// step. The kernel's gradient, the same sum with normalised x, is about sqrt(tokens) · |term|. Hence the absolute tolerance
// kRoundings · 2^-24 · (largest of the kernel's gradient). All other tensors have no absolute tolerance.
struct GradientDifference {
  struct OfTensor {
    double own = 0;        // worst difference relative to the tensor's largest number
    double tolerated = 0;  // relative to the tolerance; must be below 1
  };
  Worst worst;                              // of all, in units of kTolerance's
  std::map<std::string, OfTensor> tensors;  // by the last parts of their names, layers together

  void compare(const std::map<std::string, std::vector<double>>& expected, const NamedNumbers& actual,
               const std::string& place);
  void add(const GradientDifference& other);  // the worst of both
  void print() const;                         // one line per tensor
  static constexpr double kTolerance = 1e-5;
  // Products, softmax and its derivative, sums over keys; with residual scores also over the layers above: at most 8.
  static constexpr double kRoundings = 16;
};

// The worst differences of a model's runs from the numbers of a file. compare…() throw Error if a data set is missing in the
// file.
struct ModelDifference {
  Worst outputs, scores, loss;
  GradientDifference gradients;

  void compare_loss(const GoldenFile& file, double actual);                    // relative, in both precisions
  void compare_gradients(const GoldenFile& file, const NamedNumbers& actual);  // in both precisions of the file
  // As columns of a GoldenReport.
  std::vector<std::optional<double>> figures(bool has_scores, bool has_gradients) const;
  static std::vector<std::string> columns() { return {"outputs", "scores", "loss", "gradients"}; }
  bool tolerated() const;
  void check() const;  // asserts it
};

// Prints one row per file: its name and the worst differences.
class GoldenReport {
 public:
  GoldenReport(std::string title, std::vector<std::string> columns);
  ~GoldenReport();
  void row(const std::string& file, const std::vector<std::optional<double>>& figures);

 private:
  std::string title_;
  std::vector<std::string> lines_;
};

}  // namespace etc::test
