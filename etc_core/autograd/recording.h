// Helpers with which functions of autograd wrap a result and record its backward. For the .cpp files of this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "etc_core/autograd/parameter.h"
#include "etc_core/autograd/tape.h"
#include "etc_core/base/error.h"

namespace etc::recording {

using Slot = std::shared_ptr<Gradient>;

// Wraps an operator's result, checked on a checked tape. gradient: the type the operator's backward prefers.
inline Var made(const Tape& tape, const std::string& name, Tensor y, ElementType gradient) {
  if (tape.checked()) check_finite(name, "output", y);
  return Var(std::move(y), tape.recording(), gradient);
}
inline Var made(const Tape& tape, const std::string& name, Tensor y) {
  const ElementType type = y.type();
  return made(tape, name, std::move(y), type);
}

// Records a closure that runs only if a gradient reached y, with that gradient.
inline void record(Tape& tape, const std::string& name, const Var& y, std::function<void(Tensor dy)> backward) {
  const bool checked = tape.checked();
  tape.record([slot = y.gradient(), checked, name = checked ? name : std::string(), backward = std::move(backward)] {
    if (!slot->defined()) return;
    Tensor dy = slot->take();
    if (checked) check_finite(name, "gradient of output", dy);
    backward(std::move(dy));
  });
}

inline const float* data_of(const Parameter* parameter) {
  if (parameter == nullptr) return nullptr;
  if (!parameter->value) fail("autograd", "{} has no value yet (initialize or load the parameters)", parameter->name);
  return parameter->value.data();
}

inline void check_matrix(const char* where, const Var& x, std::int64_t cols) {
  if (x.value().rank() == 2 && x.value().cols() == cols) return;
  fail(where, "x: expected [M, {}], got {}", cols, x.value().shape_text());
}

// Memory to which an operator writes or adds its input's gradient; null when it is not needed.
struct InputGradient {
  explicit InputGradient(const Slot& slot) : add(slot->needed() && slot->defined()) {
    if (!slot->needed()) return;
    const Tensor& own = slot->storage();
    if (own.type() == ElementType::bf16) {
      bf16 = own.bf16();
    } else {
      data = own.data();
    }
  }
  bool add;
  float* data = nullptr;
  Bf16* bf16 = nullptr;  // instead
};

}  // namespace etc::recording
