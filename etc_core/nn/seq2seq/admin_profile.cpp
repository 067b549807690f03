#include "etc_core/nn/seq2seq/admin_profile.h"

#include <algorithm>
#include <cmath>

#include "etc_core/base/error.h"

namespace etc {

namespace {

constexpr const char* kWhere = "admin";

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

}  // namespace etc
