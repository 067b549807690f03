#include "tests/golden/bert_golden.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "etc_core/autograd/attention.h"
#include "etc_core/base/json.h"
#include "etc_core/checkpoint/convert/tf_bundle/bundle_writer.h"
#include "tests/core/tensor_values.h"

namespace etc::test {

namespace {

const std::string kPoolerKernel = "bert/pooler/dense/kernel", kPoolerBias = "bert/pooler/dense/bias";

std::string of_layer(std::int64_t layer, const char* name) {
  return fmt::format("layer_{}/{}", layer, name);
}

// Calls use(head, query, key, at) for all pairs of every sequence: tokens of the whole batch, `at` in [B, N, L, L].
template <typename Use>
void for_each_pair(const BertGolden& golden, const Use& use) {
  const std::int64_t L = golden.input.length, N = golden.config.num_attention_heads;
  for (std::int64_t at = 0; at < golden.input.batch * N * L * L; ++at) {
    const std::int64_t first = at / L / L / N * L;
    use(at / L / L % N, first + at / L % L, first + at % L, static_cast<std::size_t>(at));
  }
}

// Sets the layer's scores of all pairs from the inputs of its attention; with running scores, adds those of earlier layers.
void set_scores(const BertGolden& golden, const WatchedAttention& watched, BertRun& run) {
  const sparse::AttentionInputs& read = watched.inputs;
  const sparse::Rows &q = read.q, &k = read.keys[0].k;
  if (q.rows == 0) return;  // the operator of global tokens, which do not exist here
  const bool carries = golden.config.use_residual_attention && watched.layer > 0;
  std::vector<float> scores;
  if (carries) scores = run.outputs.at(of_layer(watched.layer - 1, "scores"));
  scores.resize(static_cast<std::size_t>(read.heads * golden.input.batch * golden.input.length * golden.input.length));
  for_each_pair(golden, [&](std::int64_t head, std::int64_t query, std::int64_t key, std::size_t at) {
    double score = scores[at];
    for (std::int64_t i = head * read.head_size; i < (head + 1) * read.head_size; ++i) {
      score +=
          static_cast<double>(q.data[query * q.stride + i]) * k.data[key * k.stride + i] * sparse::score_scale(read);
    }
    scores[at] = static_cast<float>(score);
  });
  run.outputs[of_layer(watched.layer, "scores")] = std::move(scores);
}

// At visible pairs, sets the scores [N, T, W] that the model carries after the layer.
void set_carried(const BertGolden& golden, std::int64_t layer, const Tensor& carried, BertRun& run) {
  std::vector<float>& scores = run.outputs.at(of_layer(layer, "scores"));
  const std::int64_t tokens = carried.dim(1), window = carried.dim(2);
  for_each_pair(golden, [&](std::int64_t head, std::int64_t query, std::int64_t key, std::size_t at) {
    if (golden.input.mask[static_cast<std::size_t>(key)] == 0) return;
    scores[at] = carried.data()[(head * tokens + query) * window + key - query + window / 2];
  });
}

}  // namespace

EncoderInput encoder_input(const BertInput& input, std::int64_t radius) {
  EncoderInput batch;
  const std::int64_t window = 2 * radius + 1;
  for (std::int64_t b = 1; b <= input.batch; ++b) {
    batch.long_offsets.push_back(b * input.length);
    batch.global_offsets.push_back(0);
  }
  batch.token_ids = input.ids;
  batch.segment_ids = input.types;
  batch.labels.l2l = Buffer<std::uint8_t>(input.batch * input.length * window, Purpose::labels);
  for (std::int64_t token = 0; token < input.batch * input.length; ++token) {
    const std::int64_t first = token / input.length * input.length;
    for (std::int64_t w = 0; w < window; ++w) {
      const std::int64_t key = token + w - radius;
      const bool visible = key >= first && key < first + input.length && input.mask[static_cast<std::size_t>(key)] != 0;
      batch.labels.l2l[token * window + w] = visible ? 0 : sparse::kMasked;
    }
  }
  return batch;
}

BertGolden::BertGolden(const std::filesystem::path& path)
    : file(path),
      config(convert::bert_config_from_json(parse_json(file.string_attribute("", "config_json"), path.string()),
                                            path.filename().string())) {
  const auto ids = file.read<std::int32_t>("inputs/input_ids");
  input.batch = ids.shape.at(0);
  input.length = ids.shape.at(1);
  input.ids = ids.values;
  input.mask = file.read_mask("inputs/input_mask");
  input.types = file.read<std::int32_t>("inputs/token_type_ids").values;
}

std::unique_ptr<convert::TensorSource> BertGolden::checkpoint(const TemporaryFolder& folder) const {
  convert::TfBundleWriter writer;
  std::map<std::string, GoldenArray<float>> weights;  // must live until the file is written
  for (const std::string& name : data_sets_below(file, "weights")) {
    const GoldenArray<float>& values = weights[name] = file.read<float>("weights/" + name);
    writer.add(name, values.shape, values.values.data());
  }
  writer.write(folder / "bert_model.ckpt");
  return convert::open_tensors(folder / "bert_model.ckpt");
}

ForwardOptions watched(const BertGolden& golden, BertRun& run) {
  ForwardOptions options;
  options.attention_watch = [&](const WatchedAttention& attention) { set_scores(golden, attention, run); };
  options.watch = [&](std::int64_t layer, const Tensor& of_long, const Tensor&, const ExternalScores& scores) {
    run.outputs[layer < 0 ? "embedding" : of_layer(layer, "output")] = values_of(of_long);
    if (layer < 0) return;
    for (const auto& [type, carried] : scores) {
      if (type == "self" || type == "l2l") set_carried(golden, layer, carried, run);
    }
  };
  return options;
}

void add_loss(const BertGolden& golden, Var& states, BertRun& run) {
  const auto read = [&](const std::string& name) { return golden.file.read<double>(name).values; };
  const std::vector<double> kernel = read("weights/" + kPoolerKernel), bias = read("weights/" + kPoolerBias);
  const std::size_t H = bias.size(), example = static_cast<std::size_t>(golden.input.length) * H;
  const float* const x = states.value().data();
  std::vector<float>& pooled = run.outputs["pooled"];  // [B, H]
  for (std::int64_t at = 0; at < golden.input.batch * golden.config.hidden_size; ++at) {
    const std::size_t out = static_cast<std::size_t>(at) % H, first = static_cast<std::size_t>(at) / H * example;
    double sum = bias[out];
    for (std::size_t in = 0; in < H; ++in) sum += x[first + in] * kernel[in * H + out];
    pooled.push_back(static_cast<float>(std::tanh(sum)));
  }
  const std::vector<float>& sequence = run.outputs["sequence"] = values_of(states.value());
  if (!golden.file.has("grads")) return;

  const std::vector<double> of_pooled = read("loss/W_pooled");
  std::vector<double> dstates = read("loss/W_sequence"), dkernel(H * H), dbias(H);
  for (std::size_t i = 0; i < sequence.size(); ++i) run.loss += sequence[i] * dstates[i];
  for (std::size_t i = 0; i < pooled.size(); ++i) {
    const std::size_t out = i % H, first = i / H * example;
    const double p = pooled[i], slope = of_pooled[i] * (1 - p * p);  // of x·kernel + bias
    run.loss += p * of_pooled[i];
    dbias[out] += slope;
    for (std::size_t in = 0; in < H; ++in) {
      dkernel[in * H + out] += slope * x[first + in];
      dstates[first + in] += slope * kernel[in * H + out];
    }
  }
  run.gradients[kPoolerKernel] = {dkernel.begin(), dkernel.end()};
  run.gradients[kPoolerBias] = {dbias.begin(), dbias.end()};
  std::copy(dstates.begin(), dstates.end(), states.grad().data());
}

void BertDifference::compare(const BertGolden& golden, const BertRun& run) {
  for (const auto& [name, values] : run.outputs) {
    compare_output(name.ends_with("/scores") ? scores : outputs, golden.file, name, values);
  }
  if (!golden.file.has("grads")) return;
  compare_loss(golden.file, run.loss);
  compare_gradients(golden.file, run.gradients);
}

std::vector<std::optional<double>> BertDifference::figures(const BertGolden& golden) const {
  return ModelDifference::figures(true, golden.file.has("grads"));
}

}  // namespace etc::test
