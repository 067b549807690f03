# cmake --install: the program with its manual page and shell completions, the library, and the files by which other
# projects find it with find_package(etc CONFIG). Components, as in the Debian packages: program, processes (the program
# for multi-process runs, linked with MPI), library, development.
include(CMakePackageConfigHelpers)
set(etc_config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/etc)

install(TARGETS etc RUNTIME COMPONENT program)
if(TARGET etc_mpi)
  install(TARGETS etc_mpi RUNTIME COMPONENT processes)
endif()
# etc_install_text(FOLDER NAME WORDS…): installs text that the program prints about itself, generated at install time.
function(etc_install_text folder name)
  set(file ${PROJECT_BINARY_DIR}/texts/${name})
  list(JOIN ARGN " " words)
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:etc>\" ${words} OUTPUT_FILE \"${file}\" COMMAND_ERROR_IS_FATAL ANY)"
          COMPONENT program)
  install(FILES ${file} DESTINATION ${folder} COMPONENT program)
endfunction()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/texts)
etc_install_text(${CMAKE_INSTALL_MANDIR}/man1 etc.1 manual)
etc_install_text(${CMAKE_INSTALL_DATADIR}/bash-completion/completions etc completion bash)
etc_install_text(${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions _etc completion zsh)
etc_install_text(${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d etc.fish completion fish)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tasks/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/longetc COMPONENT program)

# A prefix may contain both kinds of library, each with its own file of targets.
if(ETC_SHARED)
  set(etc_kind shared)
else()
  set(etc_kind static)
endif()
install(TARGETS etc_library EXPORT etc_targets
        LIBRARY COMPONENT library NAMELINK_COMPONENT development
        ARCHIVE COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/include/etc/longetc.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/etc
        COMPONENT development)
install(EXPORT etc_targets NAMESPACE etc:: FILE etc-${etc_kind}.cmake DESTINATION ${etc_config_folder}
        COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/etcConfig.cmake.in ${PROJECT_BINARY_DIR}/etcConfig.cmake
                              INSTALL_DESTINATION ${etc_config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/etcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/etcConfig.cmake ${PROJECT_BINARY_DIR}/etcConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/link_libraries.cmake
        DESTINATION ${etc_config_folder} COMPONENT development)
