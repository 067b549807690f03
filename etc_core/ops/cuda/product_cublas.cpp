// multiply() with cuBLASLt. The library is column-major: a row-major [rows, cols] is a column-major [cols, rows], so it
// computes cᵀ = bᵀ·aᵀ, and a bias of our columns is a bias of its rows. Has not run on a device yet.
#include <cublasLt.h>

#include <array>
#include <map>
#include <memory>

#include "etc_core/base/buffer.h"
#include "etc_core/base/cuda/runtime.h"
#include "etc_core/base/error.h"
#include "etc_core/ops/cuda/product.h"

namespace etc::ops::cuda {

namespace {

void check(const char* what, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("cublasLt", "{}: {}", what, cublasLtGetStatusString(status));
}

// Handles of the library, destroyed at the end of the scope.
template <typename T, cublasStatus_t (*destroy)(T)>
struct Destroy {
  void operator()(T handle) const { static_cast<void>(destroy(handle)); }
};
template <typename T, cublasStatus_t (*destroy)(T)>
using Handle = std::unique_ptr<std::remove_pointer_t<T>, Destroy<T, destroy>>;
using Description = Handle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Handle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Handle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// One handle for the process, never destroyed: at exit the runtime may already be gone.
cublasLtHandle_t library() {
  static const cublasLtHandle_t handle = [] {
    cublasLtHandle_t made = nullptr;
    check("open", cublasLtCreate(&made));
    return made;
  }();
  return handle;
}

// No workspace if sums must not be split.
std::int64_t workspace_bytes(const Product& p) {
  return p.whole_sums ? 0 : kProductWorkspace;
}

// Shared by all products, which run one after another on one stream.
void* workspace() {
  static auto* const bytes = new Bytes(kProductWorkspace, Purpose::scratch, Device::cuda);  // as long as the runtime
  return bytes->data();
}

template <typename T>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check("description", cublasLtMatmulDescSetAttribute(description.get(), attribute, &value, sizeof value));
}

cudaDataType_t type_of(ElementType type) {
  return type == ElementType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// Describes the product: sums in fp32, transposition of the two factors (which are exchanged, see the top of the file),
// and the epilogue. GELU_AUX stores the value before gelu, which our backward needs, in c's type.
Description describe(const Product& p) {
  cublasLtMatmulDesc_t made = nullptr;
  check("description", cublasLtMatmulDescCreate(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  Description description(made);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  if (p.gelu && p.pre_activation != nullptr) {
    epilogue = p.bias != nullptr ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.pre_activation);
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.cols);
  } else if (p.gelu) {
    epilogue = p.bias != nullptr ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  } else if (p.bias != nullptr) {
    epilogue = CUBLASLT_EPILOGUE_BIAS;
  }
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (p.bias != nullptr) {
    set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(p.c_type));  // no other type is allowed
  }
  return description;
}

// A column-major [rows, cols] with `stride` numbers from column to column.
Layout layout(cudaDataType_t type, std::int64_t rows, std::int64_t cols, std::int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  check("layout", cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                             static_cast<std::uint64_t>(cols), stride));
  return Layout(made);
}

// The column-major layout of a factor as it is stored; `rows` and `cols` refer to the row-major factor.
Layout layout_of(const Factor& factor, ComputeType compute, std::int64_t rows, std::int64_t cols) {
  const cudaDataType_t type = compute == ComputeType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
  return factor.transposed ? layout(type, rows, cols, factor.stride) : layout(type, cols, rows, factor.stride);
}

// The largest power of two up to 256 that divides the addresses of all rows, which are `stride` bytes apart; it does
// not depend on which row is the first.
std::uint32_t alignment(const void* pointer, std::int64_t stride) {
  std::uint32_t bytes = 256;
  while ((reinterpret_cast<std::uintptr_t>(pointer) | static_cast<std::uintptr_t>(stride)) % bytes != 0) bytes /= 2;
  return bytes;
}

std::uint32_t alignment(const Factor& factor, ComputeType compute) {
  const std::int64_t bytes = compute == ComputeType::bf16 ? 2 : 4;
  return alignment(factor.data, factor.stride * bytes);
}

// The alignment of c [rows, cols].
std::uint32_t alignment_of_c(const Product& p) {
  return alignment(p.c, p.c_stride * element_bytes(p.c_type));
}

// The library's first choice of algorithm for a call of this shape; queried once and cached, so that equal calls give
// equal bits.
const cublasLtMatmulAlgo_t& algorithm(const Product& p, const Description& description, const Layout& b,
                                      const Layout& a, const Layout& c) {
  using Key = std::array<std::int64_t, 18>;
  // The key contains all inputs of the heuristic: sizes, strides, epilogue and the alignment of addresses.
  static std::map<Key, cublasLtMatmulAlgo_t> chosen;
  const Key key{p.rows,
                p.cols,
                p.inner,
                static_cast<std::int64_t>(p.compute),
                p.a.stride,
                p.a.transposed,
                p.b.stride,
                p.b.transposed,
                p.c_stride,
                static_cast<std::int64_t>(p.c_type),
                p.add,
                p.bias != nullptr,
                p.gelu,
                p.pre_activation != nullptr,
                alignment(p.a, p.compute),
                alignment(p.b, p.compute),
                alignment_of_c(p),
                p.whole_sums};
  const auto found = chosen.find(key);
  if (found != chosen.end()) return found->second;
  cublasLtMatmulPreference_t made = nullptr;
  check("preference", cublasLtMatmulPreferenceCreate(&made));
  const Preference preference(made);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check("preference", cublasLtMatmulPreferenceSetAttribute(made, attribute, &value, sizeof value));
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_bytes(p)));
  // Splitting a sum between blocks needs a workspace or a reduction; both are excluded.
  if (p.whole_sums) {
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
  }
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p.b, p.compute));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p.a, p.compute));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of_c(p));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of_c(p));
  // A and B of the library are our b and a.
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  check("choice of an algorithm",
        cublasLtMatmulAlgoGetHeuristic(library(), description.get(), b.get(), a.get(), c.get(), c.get(),
                                       preference.get(), 1, &result, &count));
  if (count == 0) {
    fail("cublasLt", "no algorithm for [{}, {}]·[{}, {}]", p.rows, p.inner, p.inner, p.cols);
  }
  return chosen.emplace(key, result.algo).first->second;
}

}  // namespace

void reserve_product_memory() {
  workspace();
}

void multiply(const Product& p) {
  const Description description = describe(p);
  // b [inner, cols] and a [rows, inner], each in columns as it is stored; c as its [cols, rows].
  const Layout b = layout_of(p.b, p.compute, p.inner, p.cols), a = layout_of(p.a, p.compute, p.rows, p.inner);
  const Layout c = layout(type_of(p.c_type), p.cols, p.rows, p.c_stride);
  // cᵀ [cols, rows] = 1·bᵀ·aᵀ + beta·cᵀ, in place.
  const float alpha = 1.0f, beta = p.add ? 1.0f : 0.0f;
  const cublasLtMatmulAlgo_t& chosen = algorithm(p, description, b, a, c);
  check("product",
        cublasLtMatmul(library(), description.get(), &alpha, p.b.data, b.get(), p.a.data, a.get(), &beta, p.c, c.get(),
                       p.c, c.get(), &chosen, p.whole_sums ? nullptr : workspace(),
                       static_cast<std::size_t>(workspace_bytes(p)), static_cast<cudaStream_t>(simt::stream())));
}

}  // namespace etc::ops::cuda
