# Warnings, sanitizers and floating-point rules as one INTERFACE target that every library links.
add_library(etc_compiler INTERFACE)
target_include_directories(etc_compiler INTERFACE ${PROJECT_SOURCE_DIR})
# No -march: the program runs on any x86-64 with AVX2; wider instructions are chosen at run time by Highway and oneDNN.
# -Wno-restrict: GCC 12 reports false overlaps in std::string (GCC bug 105651).
# No contraction by the compiler's own choice: which products fuse must not depend on how a loop was inlined.
# Not for compilers of devices, which have options of their own (etc_core/base/*/toolchain.cmake).
# No -Wshadow where sources are compiled together (build_time.cmake): one's globals are in sight of the other.
set(etc_options -Wall -Wextra "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>" -Wno-unused-parameter -Wno-restrict -ffp-contract=off)
if(ETC_WERROR)
  list(APPEND etc_options -Werror)
endif()
target_compile_options(etc_compiler INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${etc_options}>")
if(ETC_SANITIZE)
  # What the address sanitizer stops at in any case (null pointers, objects that are too small) is not checked twice, and
  # code of tests (property ETC_TEST_CODE) is checked for addresses alone: both cost more time to compile than all else.
  target_compile_options(etc_compiler INTERFACE -fsanitize=${ETC_SANITIZE} -fno-sanitize-recover=all
                                                -fno-omit-frame-pointer)
  if(ETC_SANITIZE MATCHES "undefined")
    target_compile_options(
      etc_compiler INTERFACE
      "-fno-sanitize=$<IF:$<BOOL:$<TARGET_PROPERTY:ETC_TEST_CODE>>,undefined,null$<COMMA>object-size$<COMMA>vptr>")
  endif()
  # The instrumented code of GCC 12's <regex>, which Catch2 includes, looks uninitialized to the compiler.
  target_compile_options(etc_compiler INTERFACE -Wno-maybe-uninitialized)
  target_link_options(etc_compiler INTERFACE -fsanitize=${ETC_SANITIZE})
endif()
if(ETC_SHARED OR ETC_PYTHON)
  # A function of our own is called directly, as in a program: nothing is seen from outside but what says so.
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
endif()
