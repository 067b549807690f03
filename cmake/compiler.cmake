# Warnings, sanitizers and floating-point rules as one INTERFACE target that every library links.
add_library(etc_compiler INTERFACE)
target_include_directories(etc_compiler INTERFACE ${PROJECT_SOURCE_DIR})
# GCC 12 reports false overflows in std::string and std::vector when they are precompiled or instrumented (bug 105651).
set(etc_false_overflows -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
# No -march: the program runs on any x86-64 with AVX2; wider instructions are chosen at run time by Highway and oneDNN.
# -Wno-restrict: GCC 12 reports false overlaps in std::string (GCC bug 105651).
# No automatic contraction: which multiplications and additions are fused must not depend on how a loop was inlined.
# These options are not for device compilers, which have their own (etc_core/base/*/toolchain.cmake).
# In unity builds (build_time.cmake), where the globals of one source are visible in the next, only local names count.
set(etc_options -Wall -Wextra "$<IF:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>,-Wshadow=local,-Wshadow>" -Wno-unused-parameter -Wno-restrict -ffp-contract=off)
if(ETC_WERROR)
  list(APPEND etc_options -Werror)
endif()
target_compile_options(etc_compiler INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${etc_options}>")
if(ETC_SANITIZE)
  # Errors that the address sanitizer detects anyway (null pointers, objects that are too small, pointers outside them)
  # are not checked twice, and test code (property ETC_TEST_CODE) is checked only for addresses: these checks dominate the
  # compile time. Alignment is not checked in code that reads memory only as the type it was written (ETC_TYPED_MEMORY).
  target_compile_options(etc_compiler INTERFACE -fsanitize=${ETC_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  if(ETC_SANITIZE MATCHES "undefined")
    set(etc_twice "null$<COMMA>object-size$<COMMA>vptr$<COMMA>pointer-overflow")
    set(etc_alignment "$<$<BOOL:$<TARGET_PROPERTY:ETC_TYPED_MEMORY>>:$<COMMA>alignment>")
    target_compile_options(
      etc_compiler INTERFACE
      "-fno-sanitize=$<IF:$<BOOL:$<TARGET_PROPERTY:ETC_TEST_CODE>>,undefined,${etc_twice}${etc_alignment}>")
  endif()
  # GCC reports false uninitialised variables in the instrumented <regex> of GCC 12, which Catch2 includes.
  target_compile_options(etc_compiler INTERFACE -Wno-maybe-uninitialized ${etc_false_overflows})
  target_link_options(etc_compiler INTERFACE -fsanitize=${ETC_SANITIZE})
endif()
if(ETC_SHARED OR ETC_PYTHON)
  # Our own functions are called directly, as in a program: only symbols that are marked for export are visible.
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
endif()
