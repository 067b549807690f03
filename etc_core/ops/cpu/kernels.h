// The CPU kernels of this folder, as register_cpu_ops() puts them into the slots. Contracts are with the operators.
#pragma once

#include "etc_core/ops/activation.h"
#include "etc_core/ops/cross_entropy.h"
#include "etc_core/ops/dropout.h"
#include "etc_core/ops/elementwise.h"
#include "etc_core/ops/embedding.h"
#include "etc_core/ops/layer_norm.h"
#include "etc_core/ops/linear.h"
#include "etc_core/ops/segments.h"
#include "etc_core/ops/top_k.h"
#include "etc_core/ops/update.h"

namespace etc::ops::cpu {

// Dense products: linear_cpu.cpp, and linear_reduced_cpu.cpp for bf16 and int8.
void linear(const LinearForward& args);
void linear_backward(const LinearBackward& args);
void pack_weights(const float* weight, WeightLayout layout, Purpose purpose, PackedWeights& packed);
// Bytes of a matrix of that size and number type, packed.
std::int64_t packed_bytes(const PackedWeights& packed);
// Bytes of scratch that a product of [rows, k] with unpacked [k, n] takes on the calling thread to pack its weights.
std::int64_t packing_scratch(ComputeType compute, std::int64_t rows, std::int64_t k, std::int64_t n);

// Row by row or element by element, one file each: activation_cpu.cpp, layer_norm_cpu.cpp, dropout_cpu.cpp,
// embedding_cpu.cpp, cross_entropy_cpu.cpp.
void activation_forward(Activation activation, const float* x, float* y, std::int64_t size);
void activation_backward(Activation activation, const float* x, const float* dy, float* dx, std::int64_t size);
void layer_norm(const LayerNormForward& args);
void layer_norm_backward(const LayerNormBackward& args);
void dropout_add(const DropoutAdd& args);
void embedding(const EmbeddingForward& args);
void embedding_backward(const EmbeddingBackward& args);
void cross_entropy(const CrossEntropy& args);

// Bound by memory: elementwise_cpu.cpp, segments_cpu.cpp, top_k_cpu.cpp, update_cpu.cpp.
void add(const float* a, const float* b, float* y, std::int64_t size);
void axpy(float s, const float* b, float* a, std::int64_t size);
void scale(float s, float* a, std::int64_t size);
void sum_segments(const Segments& args);
void spread_segments(const Segments& args);
void top_k(const TopK& args);
double sum_of_squares(const float* x, std::int64_t size);
void gradient_squares(UpdateBlocks blocks, double* sums);
void update_moments(const UpdateConstants& constants, UpdateBlocks blocks, UpdateNorms* norms);
void update_weights(const UpdateConstants& constants, UpdateBlocks blocks);

}  // namespace etc::ops::cpu
