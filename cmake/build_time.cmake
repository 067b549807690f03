# Headers of the library and third-party headers that most files include, precompiled once per folder of this list. A
# build from scratch then takes a quarter less time. A compiler cache saves more and does not work together with
# precompiled headers, so they are on only where there is no cache.
if(ETC_CCACHE)
  option(ETC_PRECOMPILE "Precompile headers that most files include" OFF)
else()
  option(ETC_PRECOMPILE "Precompile headers that most files include" ON)
endif()
set(etc_precompiled <algorithm> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string> <vector>
                    <fmt/format.h>)

# etc_precompile(TARGET HEADER…): precompiles these headers and the standard ones. Without the warnings that are false in
# the precompiled std::string; builds with a compiler cache keep them.
function(etc_precompile target)
  if(ETC_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${etc_precompiled} ${ARGN})
    target_compile_options(${target} PRIVATE ${etc_false_overflows})
  endif()
endfunction()

# Unity build: the sources of one folder are compiled together, which halves the build time again, since headers and
# templates are processed once. Names without linkage must differ within a folder; the preset asan always builds this way
# and so detects collisions.
if(ETC_CCACHE)
  option(ETC_UNITY "Compile the sources of a folder together" OFF)
else()
  option(ETC_UNITY "Compile the sources of a folder together" ON)
endif()
set(etc_unity_size 10)  # maximum number of sources; with more, a change costs more than merging saves
# Excluded: all samples and conversions use the same local names, and so do the forward and backward of operators.
set(etc_unity_apart "^(data/sample|etc_core/ops/cpu|etc_core/checkpoint/convert/dense)/|/sample[.]cpp$|_command[.]cpp$")

# etc_unity(TARGET…): to be called after all sources of the targets are known.
function(etc_unity)
  if(NOT ETC_UNITY)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources EXCLUDE REGEX "^[$]<")  # objects of another target
    get_target_property(root ${target} SOURCE_DIR)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # An included source counts as a header, so GCC warns about types with internal linkage in it.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    foreach(source IN LISTS sources)
      get_filename_component(path "${source}" ABSOLUTE BASE_DIR "${root}")
      file(STRINGS "${path}" several_targets REGEX "hwy/foreach_target.h" LIMIT_COUNT 1)
      file(RELATIVE_PATH relative "${PROJECT_SOURCE_DIR}" "${path}")
      # Highway compiles such a file once for every instruction set, so two of them cannot share a unit.
      if(NOT several_targets AND NOT relative MATCHES "${etc_unity_apart}")
        get_filename_component(folder "${relative}" DIRECTORY)
        string(MAKE_C_IDENTIFIER "${folder}" folder)
        list(APPEND in_${folder} "${path}")
        list(LENGTH in_${folder} count)
        math(EXPR part "(${count} - 1) / ${etc_unity_size}")
        set_source_files_properties("${path}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${folder}_${part}")
      endif()
    endforeach()
  endforeach()
endfunction()
