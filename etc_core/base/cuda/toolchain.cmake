# The CUDA backend (ETC_CUDA): compiler, architectures, toolkit libraries. No other build reads this file.
#
# Architectures are given explicitly, because the default of CMake 3.25 is one that CUDA 13 no longer supports. 80 and
# 90 are real and virtual, so newer devices compile the PTX of 90 when the program starts.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# etc_cuda_library(TARGET): its .cu files are C++17 (its .cpp files C++20 as everywhere), and may call constexpr
# functions on the device (base/random.h).
function(etc_cuda_library target)
  set_target_properties(${target} PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
endfunction()
