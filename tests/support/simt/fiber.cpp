#include "tests/support/simt/fiber.h"

#include <cstdint>
#include <memory>

#if defined(__x86_64__)
#define ETC_FIBER_ASSEMBLY 1
#else
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace etc::simt {

namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

// The address sanitizer must be told which stack is in use.
#if defined(__SANITIZE_ADDRESS__)
void announce_switch(void** save, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(save, bottom, size);
}
void announce_arrival(void* saved, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(saved, bottom, size);
}
#else
void announce_switch(void**, const void*, std::size_t) {}
void announce_arrival(void*, const void**, std::size_t*) {}
#endif

}  // namespace

#ifdef ETC_FIBER_ASSEMBLY
// Saves the registers that a function must preserve (System V convention) and changes the stack pointer. swapcontext
// would do the same, but it makes two system calls each time.
extern "C" void etc_fiber_switch(void** save, void* load);
asm(R"(
.text
.globl etc_fiber_switch
.type etc_fiber_switch,@function
etc_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size etc_fiber_switch,.-etc_fiber_switch
)");
#endif

struct Fiber::Machine {
  std::unique_ptr<unsigned char[]> stack{new unsigned char[kStackBytes]};
#ifdef ETC_FIBER_ASSEMBLY
  void* own = nullptr;  // stack pointers
  void* caller = nullptr;
#else
  ucontext_t own{}, caller{};
#endif
  void* own_saved = nullptr;  // sanitizer state
  void* caller_saved = nullptr;
  const void* caller_bottom = nullptr;
  std::size_t caller_size = 0;
};

namespace {
thread_local Fiber* starting = nullptr;  // the fiber whose first instruction runs next
}

Fiber::Fiber() : machine_(std::make_unique<Machine>()) {}
Fiber::~Fiber() = default;

void Fiber::enter(Fiber* fiber) {
  Machine& m = *fiber->machine_;
  announce_arrival(nullptr, &m.caller_bottom, &m.caller_size);
  fiber->body_();
  fiber->ended_ = true;
  announce_switch(nullptr, m.caller_bottom, m.caller_size);  // null: this stack is no longer used
#ifdef ETC_FIBER_ASSEMBLY
  etc_fiber_switch(&m.own, m.caller);
#else
  swapcontext(&m.own, &m.caller);
#endif
}

void Fiber::start(std::function<void()> body) {
  body_ = std::move(body);
  ended_ = false;
  Machine& m = *machine_;
  m.own_saved = nullptr;
  void (*entry)() = [] { enter(starting); };
#ifdef ETC_FIBER_ASSEMBLY
  // The stack looks as if etc_fiber_switch had been called from `entry`: six saved registers, then the return address.
  // On entry the stack pointer must be 8 past a multiple of 16.
  auto top = (reinterpret_cast<std::uintptr_t>(m.stack.get()) + kStackBytes) & ~std::uintptr_t{15};
  auto* words = reinterpret_cast<void**>(top) - 2;
  words[0] = reinterpret_cast<void*>(entry);
  words[1] = nullptr;  // where `entry` would return to
  for (int i = 0; i < 6; ++i) *--words = nullptr;
  m.own = words;
#else
  getcontext(&m.own);
  m.own.uc_stack.ss_sp = m.stack.get();
  m.own.uc_stack.ss_size = kStackBytes;
  m.own.uc_link = nullptr;
  makecontext(&m.own, entry, 0);
#endif
}

bool Fiber::resume() {
  Machine& m = *machine_;
  starting = this;
  announce_switch(&m.caller_saved, m.stack.get(), kStackBytes);
#ifdef ETC_FIBER_ASSEMBLY
  etc_fiber_switch(&m.caller, m.own);
#else
  swapcontext(&m.caller, &m.own);
#endif
  announce_arrival(m.caller_saved, nullptr, nullptr);
  return !ended_;
}

void Fiber::pause() {
  Machine& m = *machine_;
  announce_switch(&m.own_saved, m.caller_bottom, m.caller_size);
#ifdef ETC_FIBER_ASSEMBLY
  etc_fiber_switch(&m.own, m.caller);
#else
  swapcontext(&m.own, &m.caller);
#endif
  announce_arrival(m.own_saved, &m.caller_bottom, &m.caller_size);
}

}  // namespace etc::simt
