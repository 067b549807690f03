# Every third-party library, found on this machine; nothing is downloaded. A missing one fails with its Debian package.
# With ETC_HDF5 and ETC_ONEDNN off only OpenMP and four header libraries are left.
# etc_require(TARGET NAME PACKAGE): fails unless TARGET exists, naming the library and the Debian package.
macro(etc_require target name package)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "${name} is missing: apt-get install ${package} (or ./run setup)")
  endif()
endmacro()

include(${CMAKE_CURRENT_LIST_DIR}/link_libraries.cmake)
# Headers alone; of ETC_HEADERS it is there already.
if(NOT ETC_HEADERS)
  find_package(nlohmann_json CONFIG QUIET)
endif()
etc_require(nlohmann_json::nlohmann_json nlohmann-json nlohmann-json3-dev)
# Several processes; without it the program works in one.
if(ETC_MPI)
  find_package(MPI COMPONENTS C QUIET)
  if(NOT MPI_C_FOUND)
    message(STATUS "MPI is missing: the program works in one process (apt-get install libopenmpi-dev openmpi-bin)")
  endif()
endif()
if(NOT ETC_HDF5)
  return()
endif()
find_package(CLI11 CONFIG QUIET)
etc_require(CLI11::CLI11 CLI11 libcli11-dev)
if(ETC_TESTS)
  find_package(Catch2 CONFIG QUIET)
  etc_require(Catch2::Catch2 Catch2 "catch2 (or configure with -DETC_TESTS=OFF)")
endif()
