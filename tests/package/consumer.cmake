# A stranger's project (consumer/) finds, links and runs the library from a prefix that was moved after the install; a
# shared library shows the header's symbols alone.
include(${CMAKE_CURRENT_LIST_DIR}/install.cmake)
file(REMOVE_RECURSE ${WORK})
etc_install(${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/moved)
etc_run(output ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build -D CMAKE_PREFIX_PATH=${WORK}/moved
        -D ETC_KIND=${KIND} -D CMAKE_BUILD_TYPE=Release)
etc_run(output ${CMAKE_COMMAND} --build ${WORK}/build)

file(WRITE ${WORK}/vocab.txt "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ntower\n##s\n")
etc_run(output ${WORK}/build/consumer ${WORK}/vocab.txt "The towers" ${WORK}/nothing)
etc_expect("${output}" "${VERSION} wordpiece 3\n")
etc_expect("${output}" "nothing: expected a model")

# Another kind, or another release, is refused with the reason.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/refused
                        -D CMAKE_PREFIX_PATH=${WORK}/moved -D ETC_KIND=neither
                ERROR_VARIABLE refusal OUTPUT_QUIET RESULT_VARIABLE code)
if(code EQUAL 0)
  message(FATAL_ERROR "a component that is not installed was found")
endif()
string(REGEX REPLACE "[ \n]+" " " refusal "${refusal}")
etc_expect("${refusal}" "the components asked for (neither) are not installed")

if(KIND STREQUAL "shared")
  file(GLOB_RECURSE library ${WORK}/moved/*/liblongetc.so.${VERSION})
  etc_run(symbols nm -D --defined-only -C ${library})
  string(REGEX REPLACE "[^\n]*(longetc::)[^\n]*\n" "" others "${symbols}")
  if(NOT others STREQUAL "")
    message(FATAL_ERROR "expected symbols of longetc alone, got:\n${others}")
  endif()
  etc_expect("${symbols}" "longetc::Model::Model")
endif()
file(REMOVE_RECURSE ${WORK})
