# Code that runs once per command, file or model, not per record or number, is compiled for size: half the code size, in
# less time.
#
#   etc_small_code(TARGET LIBRARY…)     compiles the sources that folders add to TARGET_small for size, as part of TARGET;
#                                       LIBRARY: the libraries they use, as TARGET does
function(etc_small_code target)
  add_library(${target}_small OBJECT)
  target_link_libraries(${target}_small PUBLIC ${ARGN})
  etc_optimise_for_size(${target}_small)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_small>)
endfunction()

function(etc_optimise_for_size target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
endfunction()
