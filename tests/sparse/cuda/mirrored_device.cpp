#include "tests/sparse/cuda/mirrored_device.h"

#include <vector>

#include "etc_core/base/cuda/device_array.h"
#include "sparse/cuda/attention_backend.h"
#include "sparse/scores.h"

namespace etc::test {

namespace {

using sparse::AttentionInputs;

// Host arrays and their copies on the device.
class Mirror {
 public:
  template <typename T>
  T* map(T* host, std::int64_t count) {
    if (host == nullptr || count <= 0) return host;
    const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(T));
    copies_.push_back(
        {const_cast<std::remove_const_t<T>*>(host), bytes, simt::device_bytes(bytes, Purpose::activations)});
    simt::copy_to_device(copies_.back().device.data(), host, bytes);
    return static_cast<T*>(copies_.back().device.data());
  }
  template <typename R>
  R rows(R host) {
    host.data = map(host.data, host.rows * host.stride);  // with the guards between rows
    return host;
  }
  AttentionInputs inputs(AttentionInputs in) {
    in.q = rows(in.q);
    for (int t = 0; t < 2; ++t) {
      in.keys[t] = {rows(in.keys[t].k), rows(in.keys[t].v)};
    }
    map_tables(in.relative, in);
    return in;
  }
  // Tables, or their gradients, of a call.
  template <typename Tables>
  void map_tables(Tables& tables, const AttentionInputs& in) {
    const std::int64_t rows = in.relative.labels * in.relative.heads(in.heads);
    for (auto* vectors : {&tables.vectors, &tables.key_vectors, &tables.products, &tables.value_vectors}) {
      *vectors = map(*vectors, rows * in.head_size);
    }
    for (auto* numbers : {&tables.biases, &tables.factors}) *numbers = map(*numbers, rows);
  }
  void* scratch(std::int64_t bytes) {
    scratch_ = simt::device_bytes(bytes, Purpose::scratch);
    return scratch_.data();
  }
  // Everything back, inputs included: a kernel that writes to one would be seen.
  void back() {
    for (const Copy& copy : copies_) simt::copy_to_host(copy.host, copy.device.data(), copy.bytes);
  }

 private:
  struct Copy {
    void* host;
    std::int64_t bytes;
    Bytes device;
  };
  std::vector<Copy> copies_;
  Bytes scratch_;
};

void forward(const sparse::AttentionForward& given) {
  Mirror mirror;
  auto call = given;
  for (std::size_t t = 0; t < sparse::kKeySets; ++t) {
    const std::int64_t elements = sparse::score_elements(call.inputs.tiles->types[t], call.inputs.heads);
    call.scores[t].running = mirror.map(call.scores[t].running, elements);
  }
  call.lse = mirror.map(call.lse, call.inputs.heads * call.inputs.q.rows);
  call.out = mirror.rows(call.out);
  call.scratch = mirror.scratch(sparse::cuda::forward_scratch_bytes(call.inputs));
  call.inputs = mirror.inputs(call.inputs);
  sparse::cuda::forward(call);
  mirror.back();
}

void backward(const sparse::AttentionBackward& given) {
  Mirror mirror;
  auto call = given;
  for (std::size_t t = 0; t < sparse::kKeySets; ++t) {
    const std::int64_t elements = sparse::score_elements(call.inputs.tiles->types[t], call.inputs.heads);
    call.scores[t].running = mirror.map(call.scores[t].running, elements);
    call.scores[t].gradient = mirror.map(call.scores[t].gradient, elements);
    call.dkeys[t] = {mirror.rows(call.dkeys[t].dk), mirror.rows(call.dkeys[t].dv)};
  }
  mirror.map_tables(call.drelative, call.inputs);
  call.lse = mirror.map(call.lse, call.inputs.heads * call.inputs.q.rows);
  call.out = mirror.rows(call.out);
  call.dout = mirror.rows(call.dout);
  call.dq = mirror.rows(call.dq);
  call.scratch = mirror.scratch(sparse::cuda::backward_scratch_bytes(call.inputs));
  call.inputs = mirror.inputs(call.inputs);
  sparse::cuda::backward(call);
  mirror.back();
}

}  // namespace

void register_mirrored_cuda_kernels() {
  sparse::register_cuda_kernels();  // for the sizes of scratch
  sparse::attention_forward_slot.fill(Device::cuda, forward);
  sparse::attention_backward_slot.fill(Device::cuda, backward);
}

}  // namespace etc::test
