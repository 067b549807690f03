# etc_install(PREFIX): what a developer gets of this build, without the program. Throws where anything is missing.
function(etc_install prefix)
  file(REMOVE_RECURSE ${prefix})
  foreach(component IN ITEMS library development)
    execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component ${component}
                    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endfunction()

# etc_run(RESULT WORDS…): the command's output; it must succeed.
function(etc_run result)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}: expected exit code 0, got ${code}:\n${output}")
  endif()
  set(${result} "${output}" PARENT_SCOPE)
endfunction()

# etc_expect(TEXT PART): the part is in the text.
function(etc_expect text part)
  string(FIND "${text}" "${part}" at)
  if(at LESS 0)
    message(FATAL_ERROR "expected \"${part}\" in:\n${text}")
  endif()
endfunction()
