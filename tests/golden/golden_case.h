// Golden files of the model: their inputs as encoder inputs, their weights as parameters, and comparisons that record
// the worst difference.
#pragma once

#include <array>
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

  // The arrays of a type ("l2g") have the shape [batch, queries, columns]. Types are told apart by their letters: these
  // functions are called for every pair, and comparing texts would take most of their time.
  static bool is_windowed(const std::string& type) { return type[0] == 'l' && type[2] == 'l'; }
  std::int64_t queries(const std::string& type) const { return type[0] == 'l' ? length : globals; }
  std::int64_t keys(const std::string& type) const { return type[2] == 'l' ? length : globals; }
  std::int64_t columns(const std::string& type) const { return is_windowed(type) ? window : keys(type); }
  const std::vector<std::int32_t>& mask(const std::string& type) const;
  const std::vector<std::int32_t>& ids(const std::string& type) const;
  // The key of a column; -1 outside the sequence.
  std::int64_t key(const std::string& type, std::int64_t query, std::int64_t column) const;
  // Whether the pair is visible and inside the sequence.
  bool allowed(const std::string& type, std::int64_t b, std::int64_t query, std::int64_t column) const;
  // Whether no key is visible for this query; for these our output is defined differently (etc-core 5.1).
  bool fully_masked(bool global, std::int64_t b, std::int64_t query) const;
  // The long [B·L] and global [B·G] rows that are defined alike after so many layers: in none of them fully masked, and
  // without a visible key that was not defined before.
  std::array<std::vector<bool>, 2> defined_rows(std::int64_t layers) const;

 private:
  GoldenMasks() = default;
  bool sees_only(const std::array<std::vector<bool>, 2>& rows, bool global, std::int64_t b, std::int64_t query) const;
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

// The elements of the states of this name below `outputs` ("layer_0/long") that belong to rows defined alike.
std::function<bool(std::int64_t)> counted_rows(const GoldenCase& golden, const std::string& name);

// The attributes that a model's files state about their own numbers.
inline const LeftUnread kStatements = {{"@f32_minus_f64_*", "rounding of the reference, which no program repeats"},
                                       {"@max_abs_*", "the size of numbers that are compared one by one"}};

// Folders of checkpoints beside the golden files that have this configuration file, and a golden file of their name. Throws
// Error on a folder without that file, or without a configuration of any known name, since no test would use it.
std::vector<std::filesystem::path> golden_checkpoints(const std::string& config_name);
// The golden file with the weights of such a checkpoint.
std::filesystem::path golden_file_of(const std::filesystem::path& checkpoint);

// Throws Error unless the configuration beside a checkpoint is that of its golden file. Published configurations do not
// have the settings of residual scores.
void require_golden_config(const GoldenFile& file, const std::filesystem::path& config);

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
  // Compares element by element; `counts` selects the elements (null: all); differences are divided by `scale`. Throws
  // Error when the sizes differ.
  void compare(const std::string& name, const std::vector<double>& expected, const std::vector<float>& actual,
               double scale = 1, const std::function<bool(std::int64_t)>& counts = nullptr);
};

inline constexpr double kOutputTolerance = 1e-5;

// Compares one of a model's outputs with the file's in both precisions of the file and of both of its implementations.
void compare_output(Worst& worst, const GoldenFile& file, const std::string& name, const std::vector<float>& actual,
                    const std::function<bool(std::int64_t)>& counts = nullptr);

// If all columns of a softmax share one key projection, the gradient of its bias is exactly zero, since the bias shifts whole
// rows (etc-core 13, invariant 36). In floating point it is the rounding error of sums that cancel, which optimisers without
// bias correction amplify (trap 19), so trained weights are compared without these biases.
bool is_shared_key_bias(const std::string& name, bool share_kv, bool share_qkv);

// Numbers by the file's tensor names.
using NamedNumbers = std::map<std::string, std::vector<float>>;

// Compares gradients with the file's. Throws Error when a tensor exists on one side only.
//
// Differences are relative to the tensor's largest number or, if that is more, to kSmall of the largest of all tensors (the
// golden README's measure).
//
// The gradient of a bias is a sum over tokens of the terms that its kernel's gradient multiplies with x, and may cancel to
// zero (is_shared_key_bias). Its rounding error is then that of the terms, 2^-24 · sqrt(tokens) · |term| for each rounding
// step. The kernel's gradient, the same sum with normalised x, is about sqrt(tokens) · |term|. Hence an absolute tolerance of
// kRoundings · 2^-24 · (largest of the kernel's gradient) is added. Gradients of queries and keys are zero where every row
// has one key; they may hold as much of the gradient of the values' kernel.
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
  static constexpr double kSmall = 0.01;
  // Products, softmax and its derivative, sums over keys and over what the layers above left; at most 31 in 106 files of
  // BERTs of 2 to 4 layers and 20 to 59 tokens. The reference's own rounding adds to ours.
  static constexpr double kRoundings = 64;
};

// The worst differences of a model's runs from the numbers of a file. compare…() throw Error if a data set is missing in the
// file.
struct ModelDifference {
  Worst outputs, scores, loss;
  GradientDifference gradients;

  void compare_loss(const GoldenFile& file, double actual);                    // in both precisions of the file
  void compare_gradients(const GoldenFile& file, const NamedNumbers& actual);  // in both precisions of the file
  // As columns of a GoldenReport.
  std::vector<std::optional<double>> figures(bool has_scores, bool has_gradients) const;
  static std::vector<std::string> columns() { return {"outputs", "scores", "loss", "gradients"}; }
  bool tolerated() const;
  void check() const;  // asserts it
};

// How far a falsified number of a data set of outputs, scores, losses or gradients is from the true one: a thousandth of it,
// of small numbers what is well outside the tolerances above.
double falsification(const std::string& data_set, double value);

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
