#include "etc_core/checkpoint/convert/bert/bert_names.h"

#include <algorithm>
#include <array>

#include "etc_core/base/error.h"
#include "etc_core/checkpoint/convert/report.h"

namespace etc::convert {

namespace {

// PyTorch names of the heads, and other names that do not follow the rule.
struct Translation {
  std::string_view stored, name;
};
constexpr std::array<Translation, 9> kIrregular = {
    {{"cls.predictions.bias", "cls/predictions/output_bias"},
     {"lm_head.bias", "cls/predictions/output_bias"},
     {"lm_head.dense.weight", "cls/predictions/transform/dense/kernel"},
     {"lm_head.dense.bias", "cls/predictions/transform/dense/bias"},
     {"lm_head.layer_norm.weight", "cls/predictions/transform/LayerNorm/gamma"},
     {"lm_head.layer_norm.bias", "cls/predictions/transform/LayerNorm/beta"},
     {"cls.seq_relationship.weight", "cls/seq_relationship/output_weights"},
     {"cls.seq_relationship.bias", "cls/seq_relationship/output_bias"},
     {"lm_head.layer_norm.gamma", "cls/predictions/transform/LayerNorm/gamma"}}};

bool starts_dotted(std::string_view name) {
  for (const std::string_view prefix :
       {"embeddings.", "encoder.layer.", "pooler.dense.", "cls.predictions.transform."}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// The name without the model's prefix, which is missing in models saved without their heads.
std::string_view without_model(std::string_view dotted) {
  for (const std::string_view prefix : {"bert.", "roberta.", "electra."}) {
    if (dotted.starts_with(prefix)) return dotted.substr(prefix.size());
  }
  return dotted;
}

bool is_slot(std::string_view stored) {
  return stored.ends_with("/adam_m") || stored.ends_with("/adam_v");
}

// "encoder.layer.7.output" → "encoder/layer_7/output"
std::string slashed(std::string_view dotted) {
  std::string name;
  for (const char c : dotted) name += c == '.' ? '/' : c;
  const std::size_t at = name.find("/layer/");
  if (at != std::string::npos) name[at + 6] = '_';
  return name;
}

}  // namespace

BertName bert_name(std::string_view stored) {
  if (stored.find('/') != std::string_view::npos) {
    const bool known = (stored.starts_with("bert/") || stored.starts_with("cls/")) && !is_slot(stored);
    return {known ? std::string(stored) : "", false};
  }
  for (const Translation& one : kIrregular) {
    if (stored == one.stored) return {std::string(one.name), one.name.ends_with("/kernel")};
  }
  const std::string_view rest = without_model(stored);
  const std::size_t dot = rest.rfind('.');
  if (!starts_dotted(rest) || dot == std::string_view::npos) return {};
  const std::string_view layer = rest.substr(0, dot), tail = rest.substr(dot + 1);
  const std::string name = (rest.starts_with("cls.") ? "" : "bert/") + slashed(layer);
  if (layer.ends_with("LayerNorm")) {
    if (tail == "weight" || tail == "gamma") return {name + "/gamma", false};
    if (tail == "bias" || tail == "beta") return {name + "/beta", false};
  } else if (layer.ends_with("_embeddings")) {
    if (tail == "weight") return {name, false};
  } else {
    if (tail == "weight") return {name + "/kernel", true};
    if (tail == "bias") return {name + "/bias", false};
  }
  return {};
}

BertVariables bert_variables(const TensorSource& source) {
  BertVariables variables;
  for (const auto& [stored, tensor] : source.tensors()) {
    const BertName known = bert_name(stored);
    if (known.name.empty()) continue;
    BertVariable variable{stored, known.transposed, tensor.shape};
    if (known.transposed) {
      if (variable.shape.size() != 2) fail(source.where(), "{}: expected a matrix, got {}", stored, tensor.text());
      std::swap(variable.shape[0], variable.shape[1]);
    }
    const auto [there, fresh] = variables.emplace(known.name, std::move(variable));
    if (!fresh) fail(source.where(), "{} and {} are the same variable", there->second.stored, stored);
  }
  return variables;
}

BertName hub_name(std::string_view name) {
  if (name.starts_with("cls/")) {
    for (const Translation& one : kIrregular) {
      if (name == one.name && one.stored.starts_with("cls.")) return {std::string(one.stored), false};
    }
    if (!name.starts_with("cls/predictions/transform/")) return {};
  } else if (name.starts_with("bert/")) {
    name.remove_prefix(5);
  } else {
    return {};
  }
  std::string dotted;
  for (const char c : name) dotted += c == '/' ? '.' : c;
  if (const std::size_t at = dotted.find(".layer_"); at != std::string::npos) dotted[at + 6] = '.';
  if (dotted.ends_with("_embeddings")) return {dotted + ".weight", false};
  const std::size_t dot = dotted.rfind('.');
  const std::string owner = dotted.substr(0, dot), tail = dotted.substr(dot + 1);
  if (tail == "kernel") return {owner + ".weight", true};
  if (tail == "bias") return {dotted, false};
  if (tail == "gamma") return {owner + ".weight", false};
  if (tail == "beta") return {owner + ".bias", false};
  return {};
}

void transpose(const float* x, std::int64_t rows, std::int64_t cols, float* y) {
  constexpr std::int64_t kTile = 32;  // tiles of both matrices stay in the cache, although one is read across its rows
  for (std::int64_t i0 = 0; i0 < rows; i0 += kTile) {
    for (std::int64_t j0 = 0; j0 < cols; j0 += kTile) {
      for (std::int64_t j = j0; j < std::min(cols, j0 + kTile); ++j) {
        for (std::int64_t i = i0; i < std::min(rows, i0 + kTile); ++i) y[j * rows + i] = x[i * cols + j];
      }
    }
  }
}

void read_variable(const TensorSource& source, const BertVariable& variable, float* out) {
  if (!variable.transposed) return source.read_floats(variable.stored, out);
  std::vector<float> stored(static_cast<std::size_t>(source.at(variable.stored).count()));  // [out, in]
  source.read_floats(variable.stored, stored.data());
  transpose(stored.data(), variable.shape[1], variable.shape[0], out);
}

std::string why_left_out(std::string_view stored, bool exact) {
  const std::string name = bert_name(stored).name;
  if (is_slot(stored)) return kOptimiserSlot;
  if (stored == "global_step") return "number of training steps";
  if (name.starts_with("bert/pooler/")) return "pooler: ETC has none";
  if (name.starts_with("cls/seq_relationship/")) return "next-sentence head: ETC has none";
  if (name.starts_with("cls/")) return "masked-language-model head (--without-heads)";
  if (name == "bert/embeddings/position_embeddings" && !exact) {
    return "absolute positions: ETC has relative ones (--exact keeps them)";
  }
  if (stored.ends_with("decoder.weight") || stored.ends_with("decoder.bias")) return "a copy of a tied tensor";
  if (stored.ends_with("position_ids")) return "the numbers 0, 1, 2, …";
  if (stored.ends_with("token_type_ids")) return "zeros, which are read where no types are given";
  return kUnknownTensor;
}

bool is_bert_encoder(std::string_view stored) {
  const bool slashed = stored.find('/') != std::string_view::npos;
  const std::string_view rest = slashed ? stored : without_model(stored);
  // "embeddings_project." is a name of ELECTRA.
  return slashed ? rest.starts_with("bert/embeddings") || rest.starts_with("bert/encoder")
                 : rest.starts_with("embeddings") || rest.starts_with("encoder.");
}

}  // namespace etc::convert
