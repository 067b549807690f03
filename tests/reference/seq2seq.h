// An encoder-decoder for one pair of sentences in double, written only from translation 1 to 3; shares no code with the
// library.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/reference/dense.h"

namespace etc::test {

struct ReferenceSeq2Seq {
  std::map<std::string, Reals> parameters;  // by their names
  std::int64_t hidden = 0, heads = 0, inner = 0, encoder_layers = 0, decoder_layers = 0;
  std::string norm, activation = "relu";  // as in the configuration
  bool carried[3] = {};                   // encoder_self, decoder_self, cross
  bool mean = false;

  // source, target ids → decoder states [T, H]; encoder states [S, H] to `encoded`.
  Reals decode(const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& target, Reals& encoded) const {
    encoded = stack("encoder", source, encoder_layers, {});
    return stack("decoder", target, decoder_layers, encoded);
  }

 private:
  const Reals& at(const std::string& name) const { return parameters.at("seq2seq/" + name); }

  Reals dense(const Reals& x, const std::string& name, std::int64_t in) const {
    const Reals &kernel = at(name + "/kernel"), &bias = at(name + "/bias");
    const auto out = static_cast<std::int64_t>(bias.size()), rows = static_cast<std::int64_t>(x.size()) / in;
    Reals y = matrix_product(x, kernel, rows, in, out);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
    return y;
  }

  Reals layer_norm(const Reals& x, const std::string& name) const {
    const std::string own = name + "/LayerNorm/";
    return reference_layer_norm(x, at(own + "gamma"), at(own + "beta"), static_cast<std::int64_t>(x.size()) / hidden,
                                hidden, {.epsilon = 1e-5});
  }

  bool has_norms() const { return norm != "rezero"; }

  // y of one sub-layer with this branch.
  Reals around(const Reals& x, const std::string& name, const std::string& layer, bool decoder,
               const std::function<Reals(const Reals&)>& branch) const {
    const Reals f = branch(norm == "pre_ln" ? layer_norm(x, name) : x);
    const double depth = std::pow(static_cast<double>(encoder_layers), 4) * static_cast<double>(decoder_layers);
    const double skip = norm != "deepnet" ? 1
                        : decoder         ? std::pow(3.0 * static_cast<double>(decoder_layers), 0.25)
                                          : 0.81 * std::pow(depth, 1 / 16.0);
    const double alpha = norm.starts_with("rezero") ? at(layer + "rezero_alpha")[0] : 1;
    Reals y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double omega = norm == "admin" ? at(name + "/admin_omega")[i % static_cast<std::size_t>(hidden)] : 1;
      y[i] = omega * skip * x[i] + alpha * f[i];
    }
    return has_norms() && norm != "pre_ln" ? layer_norm(y, name) : y;
  }

  // carry [heads, queries, keys] of the type, or empty where it carries none.
  Reals attend(const Reals& x, const Reals& memory, const std::string& name, bool causal, std::int64_t layer,
               Reals* carry) const {
    const std::int64_t d = hidden / heads, nq = static_cast<std::int64_t>(x.size()) / hidden,
                       nk = static_cast<std::int64_t>(memory.size()) / hidden;
    const Reals q = dense(x, name + "/query", hidden), k = dense(memory, name + "/key", hidden),
                v = dense(memory, name + "/value", hidden);
    Reals out(x.size());
    for (std::int64_t a = 0; a < heads; ++a) {
      for (std::int64_t i = 0; i < nq; ++i) {
        const std::int64_t seen = causal ? i + 1 : nk;
        Reals p(static_cast<std::size_t>(seen));
        double sum = 0;
        for (std::int64_t j = 0; j < seen; ++j) {
          double s = 0;
          for (std::int64_t c = 0; c < d; ++c) {
            s += q[static_cast<std::size_t>(i * hidden + a * d + c)] *
                 k[static_cast<std::size_t>(j * hidden + a * d + c)] / std::sqrt(static_cast<double>(d));
          }
          if (carry != nullptr) {
            carry->resize(static_cast<std::size_t>(heads * nq * nk));
            double& held = (*carry)[static_cast<std::size_t>((a * nq + i) * nk + j)];
            s = held += s;
            if (mean) s /= static_cast<double>(layer + 1);
          }
          sum += p[static_cast<std::size_t>(j)] = std::exp(s);
        }
        for (std::int64_t j = 0; j < seen; ++j) {
          for (std::int64_t c = 0; c < d; ++c) {
            out[static_cast<std::size_t>(i * hidden + a * d + c)] +=
                p[static_cast<std::size_t>(j)] / sum * v[static_cast<std::size_t>(j * hidden + a * d + c)];
          }
        }
      }
    }
    return dense(out, name + "/output", hidden);
  }

  Reals embedded(const std::string& stack_name, const std::vector<std::int32_t>& ids) const {
    const std::string own = stack_name == "encoder" ? "source" : "target";
    const auto found = parameters.find("seq2seq/embeddings/tokens");
    const Reals& table = found != parameters.end() ? found->second : at("embeddings/" + own);
    const std::int64_t half = hidden / 2;
    Reals x;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      for (std::int64_t j = 0; j < hidden; ++j) {
        const double angle = static_cast<double>(i + 2) *
                             std::pow(10000.0, -static_cast<double>(j % half) / static_cast<double>(half - 1));
        x.push_back(std::sqrt(static_cast<double>(hidden)) * table[static_cast<std::size_t>(ids[i] * hidden + j)] +
                    (j < half ? std::sin(angle) : std::cos(angle)));
      }
    }
    return x;
  }

  Reals stack(const std::string& own, const std::vector<std::int32_t>& ids, std::int64_t layers,
              const Reals& memory) const {
    const bool decoder = own == "decoder";
    Reals x = embedded(own, ids), of_self, of_cross;
    Reals* const self_carry = carried[decoder ? 1 : 0] ? &of_self : nullptr;
    Reals* const cross_carry = carried[2] ? &of_cross : nullptr;
    for (std::int64_t i = 0; i < layers; ++i) {
      const std::string layer = own + "/layer_" + std::to_string(i) + "/", self = layer + "self_attention",
                        cross = layer + "cross_attention", ffn = layer + "feed_forward";
      x = around(x, self, layer, decoder, [&](const Reals& y) { return attend(y, y, self, decoder, i, self_carry); });
      if (decoder) {
        x = around(x, cross, layer, decoder,
                   [&](const Reals& y) { return attend(y, memory, cross, false, i, cross_carry); });
      }
      x = around(x, ffn, layer, decoder, [&](const Reals& y) {
        Reals z = dense(y, ffn + "/inner", hidden);
        for (double& number : z) number = reference_activation(activation, number);
        return dense(z, ffn + "/outer", inner);
      });
    }
    return norm == "pre_ln" ? layer_norm(x, own + "/final") : x;
  }
};

}  // namespace etc::test
