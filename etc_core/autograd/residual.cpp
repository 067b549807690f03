// Layer norms, residual sums and dropout on a tape.
#include "etc_core/autograd/functions.h"
#include "etc_core/autograd/recording.h"
#include "etc_core/base/backend.h"
#include "etc_core/base/counting.h"
#include "etc_core/base/device_memory.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/scaled_sum.h"

namespace etc {

using namespace recording;

namespace {

void check_equal_shapes(const char* where, const Var& x, const Var& branch) {
  if (x.value().shape() == branch.value().shape()) return;
  fail(where, "x and branch must have equal shapes: x {}, branch {}", x.value().shape_text(),
       branch.value().shape_text());
}

// Values saved for a layer norm's backward.
struct NormSaved {
  LayerNormParameters norm;
  Dropout dropout;         // of the branch
  Tensor sum, mean, rstd;  // [M, H], [M], [M]
};

// branch_slot: null without a branch.
void normalized_backward(const NormSaved& saved, const Slot& slot, const Slot& branch_slot, const Tensor& dy) {
  ops::LayerNormBackward back{.rows = saved.sum.rows(),
                              .cols = saved.sum.cols(),
                              .dy = dy.data(),
                              .sum = saved.sum.data(),
                              .mean = saved.mean.data(),
                              .rstd = saved.rstd.data(),
                              .gamma = data_of(saved.norm.gamma),
                              .dgamma = saved.norm.gamma->gradient().data(),
                              .dbeta = saved.norm.beta->gradient().data(),
                              .centred = saved.norm.statistics.centred};
  const InputGradient dx(slot);
  back.dx = dx.data;
  back.add_to_dx = dx.add;
  const bool to_branch = branch_slot != nullptr && branch_slot->needed();
  Tensor dbranch;
  if (to_branch) {
    back.dropout = saved.dropout.arguments();
    if (branch_slot->type() == ElementType::bf16) {
      dbranch = Tensor::empty(dy.shape(), Purpose::activations, dy.device(), ElementType::bf16);
      back.dbranch_bf16 = dbranch.bf16();
    } else {
      dbranch = dy;  // in place: only this closure uses dy
      back.dbranch = dbranch.data();
    }
  }
  ops::layer_norm_backward(saved.sum.device(), back);
  if (to_branch) branch_slot->add(dbranch);
}

// layer_norm and residual_layer_norm: `branch` undefined for the former.
Var normalized(Tape& tape, const Var& x, const Var& branch, const LayerNormParameters& norm, const Dropout& dropout) {
  check_matrix("layer_norm", x, norm.gamma->size());
  const Tensor& value = x.value();
  const Device device = value.device();
  const std::int64_t rows = value.rows(), cols = value.cols();
  Tensor y = tape.empty({rows, cols}, Purpose::activations, device);
  Tensor sum, mean, rstd;
  ops::LayerNormForward args{.rows = rows,
                             .cols = cols,
                             .x = value.data(),
                             .gamma = data_of(norm.gamma),
                             .beta = data_of(norm.beta),
                             .y = y.data(),
                             .statistics = norm.statistics};
  Tensor bf16;
  if (norm.rounded && etc::keeps_bf16(device, ComputeType::bf16) && cols % ops::kBf16Columns == 0) {
    bf16 = tape.empty({rows, cols}, Purpose::activations, device, ElementType::bf16);
    args.y_bf16 = bf16.bf16();
  }
  if (branch.defined()) {
    check_equal_shapes("residual_layer_norm", x, branch);
    args.branch = branch.value().data();
    args.dropout = dropout.arguments();
  }
  if (tape.recording()) {
    sum = value;
    if (branch.defined()) {
      sum = Tensor::empty({rows, cols}, Purpose::activations, device);
      args.sum = sum.data();
    }
    mean = Tensor::empty({rows}, Purpose::activations, device);
    rstd = Tensor::empty({rows}, Purpose::activations, device);
    args.mean = mean.data();
    args.rstd = rstd.data();
  }
  ops::layer_norm(device, args);
  const std::string name = tape.checked() ? "layer_norm " + norm.gamma->name : "";
  tape.uses(norm.gamma);
  tape.uses(norm.beta);
  Var result = made(tape, name, std::move(y));
  result.rounded() = std::move(bf16);
  if (!tape.recording()) return result;
  record(tape, name, result,
         [saved = NormSaved{norm, dropout, sum, mean, rstd}, slot = x.gradient(),
          branch_slot = branch.defined() ? branch.gradient() : nullptr](const Tensor& dy) {
           normalized_backward(saved, slot, branch_slot, dy);
         });
  return result;
}

}  // namespace

Var layer_norm(Tape& tape, const Var& x, const LayerNormParameters& norm) {
  return normalized(tape, x, Var(), norm, Dropout());
}

Var residual_layer_norm(Tape& tape, const Var& x, const Var& branch, const LayerNormParameters& norm,
                        const Dropout& dropout) {
  return normalized(tape, x, branch, norm, dropout);
}

namespace {

// y = base + dropout(a), base null: dropout(a).
void run_dropout(const Tensor& a, const float* base, float* y, const Dropout& dropout) {
  ops::DropoutAdd args{
      .rows = a.rows(), .cols = a.cols(), .a = a.data(), .base = base, .y = y, .dropout = dropout.arguments()};
  ops::dropout_add(a.device(), args);
}

}  // namespace

Var residual(Tape& tape, const Var& x, const Var& branch, const Dropout& dropout) {
  check_equal_shapes("residual", x, branch);
  Tensor y = tape.empty(x.value().shape(), Purpose::activations, x.value().device());
  run_dropout(branch.value(), x.value().data(), y.data(), dropout);
  Var result = made(tape, "residual", std::move(y));
  if (!tape.recording()) return result;
  record(tape, "residual", result, [dropout, slot = x.gradient(), branch_slot = branch.gradient()](Tensor dy) {
    if (branch_slot->needed()) {
      // Two gradients from one: the branch gets a new tensor, x takes dy over.
      const Tensor dbranch = Tensor::empty(dy.shape(), Purpose::activations, dy.device());
      run_dropout(dy, nullptr, dbranch.data(), dropout);
      branch_slot->add(dbranch);
    }
    if (slot->needed()) slot->add(dy);
  });
  return result;
}

Var scaled_residual(Tape& tape, const Var& x, const Var& branch, Parameter& alpha) {
  check_equal_shapes("scaled_residual", x, branch);
  const Tensor& scaled = branch.value();
  Tensor y = tape.empty(scaled.shape(), Purpose::activations, scaled.device());
  if (alpha.size() != 1 && alpha.size() != scaled.cols()) {
    fail("scaled_residual", "{}: expected one number or {}, one for each column, got {}", alpha.name, scaled.cols(),
         alpha.size());
  }
  ops::scaled_sum(scaled.device(),
                  {scaled.size(), x.value().data(), scaled.data(), data_of(&alpha), y.data(), alpha.size()});
  const std::string name = tape.checked() ? "scaled_residual " + alpha.name : "";
  tape.uses(&alpha);
  Var result = made(tape, name, std::move(y));
  if (!tape.recording()) return result;
  record(tape, name, result, [&alpha, scaled, slot = x.gradient(), branch_slot = branch.gradient()](Tensor dy) {
    ops::ScaledSumBackward back{.size = scaled.size(),
                                .dy = dy.data(),
                                .branch = scaled.data(),
                                .alpha = data_of(&alpha),
                                .dalpha = alpha.gradient().data(),
                                .alphas = alpha.size()};
    Tensor dbranch;  // a new tensor, because x takes dy over
    if (branch_slot->needed()) {
      dbranch = Tensor::empty(dy.shape(), Purpose::activations, dy.device());
      back.dbranch = dbranch.data();
    }
    ops::scaled_sum_backward(scaled.device(), back);
    if (dbranch) branch_slot->add(dbranch);
    if (slot->needed()) slot->add(dy);
  });
  return result;
}

Var scaled_residual(Tape& tape, const Var& x, const Var& branch, float factor) {
  check_equal_shapes("scaled_residual", x, branch);
  const Device device = x.value().device();
  Tensor y = tape.empty(x.value().shape(), Purpose::activations, device);
  const Tensor alpha = Tensor::empty({1}, Purpose::scratch, device);
  if (!counting()) copy_bytes(device, alpha.data(), Device::cpu, &factor, sizeof(factor));
  ops::scaled_sum(device, {y.size(), x.value().data(), branch.value().data(), alpha.data(), y.data()});
  Var result = made(tape, "scaled_residual", std::move(y));
  if (!tape.recording()) return result;
  record(tape, "scaled_residual", result, [alpha, slot = x.gradient(), branch_slot = branch.gradient()](Tensor dy) {
    if (branch_slot->needed()) {
      // A new tensor, because x takes dy over. Without dalpha the kernel does not read the branch argument.
      const Tensor dbranch = Tensor::empty(dy.shape(), Purpose::activations, dy.device());
      ops::scaled_sum_backward(dy.device(), {dy.size(), dy.data(), dy.data(), alpha.data(), dbranch.data()});
      branch_slot->add(dbranch);
    }
    if (slot->needed()) slot->add(dy);
  });
  return result;
}

Var dropout(Tape& tape, const Var& x, const Dropout& dropout) {
  if (dropout.rate == 0) return x;
  Tensor y = tape.empty(x.value().shape(), Purpose::activations, x.value().device());
  run_dropout(x.value(), nullptr, y.data(), dropout);
  Var result = made(tape, "dropout", std::move(y));
  if (tape.recording() && x.needs_grad()) {
    record(tape, "dropout", result, [dropout, slot = x.gradient()](Tensor dy) {
      run_dropout(dy, nullptr, dy.data(), dropout);
      slot->add(dy);
    });
  }
  return result;
}

}  // namespace etc
