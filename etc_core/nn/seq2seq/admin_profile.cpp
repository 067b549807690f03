#include "etc_core/nn/seq2seq/admin_profile.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "etc_core/base/error.h"

namespace etc {

namespace {

constexpr const char* kWhere = "admin";
constexpr std::string_view kOmega = "/admin_omega";

// The population variance of all elements, summed in order on one thread, since a profile pass happens only once per
// training.
double variance(const Tensor& x) {
  const Tensor host = x.to(Device::cpu);
  const double count = static_cast<double>(host.size());
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < host.size(); ++i) sum += static_cast<double>(host.data()[i]);
  const double mean = sum / count;
  for (std::int64_t i = 0; i < host.size(); ++i) {
    const double off = static_cast<double>(host.data()[i]) - mean;
    squares += off * off;
  }
  return squares / count;
}

void set_all(Parameter& parameter, double value) {
  const Device device = parameter.value.device();
  const Tensor numbers = Tensor::empty(parameter.shape, Purpose::weights);
  std::fill_n(numbers.data(), numbers.size(), static_cast<float>(value));
  parameter.value = numbers.to(device);
  ++parameter.version;
}

// State of one stack: R after the sub-layers seen so far, and their results.
class Chain final : public SkipWatch {
 public:
  explicit Chain(std::vector<AdminBranch>& seen) : seen_(seen) {}

  void see(const Tensor& x, const Tensor& branch, Parameter& omega) override {
    AdminBranch& own = seen_.emplace_back();
    own.omega = &omega;
    own.value = running_;
    own.branch_variance = variance(branch);
    own.skip_variance = running_ * running_ * variance(x);
    running_ = std::sqrt(own.skip_variance + own.branch_variance);
    if (!std::isfinite(running_)) {
      fail(kWhere, "{}: the profile has variances {} and {}: expected numbers", omega.name, own.skip_variance,
           own.branch_variance);
    }
    set_all(omega, own.value);
  }

 private:
  std::vector<AdminBranch>& seen_;
  double running_ = 1;
};

// Installs the watch for the lifetime of this object.
template <typename Watched>
struct Watching : NotCopied {
  Watching(Watched& of, SkipWatch& watch) : model(of) { of.watch_skips(&watch); }
  ~Watching() { model.watch_skips(nullptr); }
  Watched& model;
};

bool ends_with_any(const std::string& name, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return name.ends_with(ending); });
}

}  // namespace

std::vector<AdminBranch> profile_admin(Seq2SeqEncoder& encoder, Seq2SeqDecoder& decoder, const EncoderInput& source,
                                       const DecoderInput& target, const ForwardOptions& options) {
  if (encoder.config().norm != Seq2SeqConfig::Norm::admin) fail(kWhere, "a profile: expected a model of norm admin");
  if (source.long_tokens() == 0 || target.target_ids.empty()) {
    fail(kWhere, "a profile: expected tokens on both sides, got {} and {}", source.long_tokens(),
         target.target_ids.size());
  }
  std::vector<AdminBranch> seen;
  Chain of_encoder(seen), of_decoder(seen);
  const Watching<Seq2SeqEncoder> watching_encoder(encoder, of_encoder);
  const Watching<Seq2SeqDecoder> watching_decoder(decoder, of_decoder);
  Tape tape(Recording::on);  // needed for dropout; backward is never run
  const Var states = encoder.forward(tape, source, options).long_states;
  decoder.forward(tape, states, target, options);
  return seen;
}

std::string admin_profile_text(const std::vector<AdminBranch>& profile) {
  std::string text;
  std::int64_t index = 0;
  bool decoder = false;
  for (const AdminBranch& branch : profile) {
    const bool of_decoder = branch.omega->name.find("/decoder/") != std::string::npos;
    if (of_decoder && !decoder) index = 0;
    decoder = of_decoder;
    text += fmt::format("{} {:.9g}\n", ++index, branch.value);
  }
  return text;
}

namespace {

// How a parameter's values [rows, width] change: the norm before a sub-layer is multiplied; rows of the kernels that
// read its x are divided.
enum class Fold { multiply, divide_rows };

void fold(Parameter& parameter, const Parameter& omega, Fold how) {
  const Tensor factors = omega.value.to(Device::cpu);
  const std::int64_t count = factors.size(), width = parameter.size() / count;
  float* const values = parameter.value.data();
  for (std::int64_t i = 0; i < parameter.size(); ++i) {
    const double factor = static_cast<double>(factors.data()[i / width]);
    if (!(std::abs(factor) > 0)) fail(kWhere, "{}: expected numbers other than 0 to fold, got {}", omega.name, factor);
    values[i] = static_cast<float>(how == Fold::multiply ? values[i] * factor : values[i] / factor);
  }
}

// "…/layer_3/cross_attention/"
std::string sublayer_of(const Parameter& omega) {
  return omega.name.substr(0, omega.name.size() - kOmega.size() + 1);
}

}  // namespace

void fold_admin(const ParameterSet& from, ParameterSet& to) {
  std::vector<const Parameter*> omegas;
  std::size_t filled = 0;
  for (const auto& parameter : from.all()) {
    const bool omega = parameter->name.ends_with(kOmega);
    if (omega) omegas.push_back(parameter.get());
    Parameter* const own = to.find(parameter->name);
    if (own == nullptr && omega) continue;
    if (own == nullptr || own->shape != parameter->shape) {
      fail(kWhere, "{}: expected one of the same shape in the model to fold into", parameter->name);
    }
    own->value = parameter->value.to(Device::cpu).clone(Purpose::weights);
    ++own->version;
    ++filled;
  }
  if (filled != to.all().size()) {
    fail(kWhere, "the model to fold into has {} parameters: expected the {} that the other has, without its numbers",
         to.all().size(), filled);
  }
  if (omegas.empty()) fail(kWhere, "nothing to fold: expected a model of norm admin");
  std::string before;  // the sub-layer below in the same stack
  for (const Parameter* omega : omegas) {
    const std::string own = sublayer_of(*omega);
    if (to.find(omega->name) == nullptr) {
      for (const char* name : {"LayerNorm/gamma", "LayerNorm/beta"}) fold(to.at(before + name), *omega, Fold::multiply);
      const bool across = own.ends_with("/cross_attention/");
      for (const auto& parameter : to.all()) {
        const std::string& name = parameter->name;
        if (!name.starts_with(own) ||
            !ends_with_any(name, {"query/kernel", "key/kernel", "value/kernel", "inner/kernel"}))
          continue;
        if (!across || name.ends_with("query/kernel")) fold(*parameter, *omega, Fold::divide_rows);
      }
    }
    before = own;
  }
}

}  // namespace etc
