# Headers of the library and of others that most files include, compiled once per folder of this list: a build from
# nothing then takes a quarter less. A compiler cache does better and does not go together with it, so it is on where
# there is none.
if(ETC_CCACHE)
  option(ETC_PRECOMPILE "Precompile headers that most files include" OFF)
else()
  option(ETC_PRECOMPILE "Precompile headers that most files include" ON)
endif()
set(etc_precompiled <algorithm> <cstdint> <filesystem> <functional> <map> <memory> <optional> <span> <string> <vector>
                    <fmt/format.h>)
# GCC 12 reports false overflows in the precompiled std::string (GCC bug 105651); builds with a compiler cache keep these
# warnings.
set(etc_precompile_options -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)

# etc_precompile(TARGET HEADER…): these and the standard ones.
function(etc_precompile target)
  if(ETC_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${etc_precompiled} ${ARGN})
    target_compile_options(${target} PRIVATE ${etc_precompile_options})
  endif()
endfunction()
