# All third-party libraries are looked up on this machine; nothing is downloaded. A missing one is an error that names
# its Debian package. With ETC_HDF5 and ETC_ONEDNN off only OpenMP and four header libraries are needed.
# etc_require(TARGET NAME PACKAGE): fails unless TARGET exists, naming the library and the Debian package.
macro(etc_require target name package)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "${name} is missing: apt-get install ${package} (or ./run setup)")
  endif()
endmacro()

include(${CMAKE_CURRENT_LIST_DIR}/link_libraries.cmake)
# Libraries of which headers suffice; with ETC_HEADERS they are defined already.
if(NOT ETC_HEADERS)
  find_package(nlohmann_json CONFIG QUIET)
  find_path(ETC_HWY_INCLUDE_DIR hwy/highway.h)
  if(ETC_HWY_INCLUDE_DIR)
    add_library(etc_hwy INTERFACE IMPORTED)
    target_include_directories(etc_hwy INTERFACE ${ETC_HWY_INCLUDE_DIR})
  endif()
endif()
etc_require(nlohmann_json::nlohmann_json nlohmann-json nlohmann-json3-dev)
etc_require(etc_hwy Highway libhwy-dev)
# Highway compiles a file once per instruction set and picks one at run time: AVX2 (the minimum of the program) and
# AVX-512, or NEON. Vectors of unknown length (SVE, RVV) do not fit register tiles. Sanitizer builds use AVX2 alone: it
# halves the compile time, and the address sanitizer does not check the masked loads and stores of AVX-512 anyway.
set(etc_vectors_not_meant "HWY_AVX3_DL|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|HWY_RVV")
if(ETC_SANITIZE)
  string(APPEND etc_vectors_not_meant "|HWY_AVX3")
endif()
# HWY_IS_DEBUG_BUILD: Highway's own assertions, on in sanitizer builds otherwise, call its library.
target_compile_definitions(etc_hwy INTERFACE "HWY_DISABLED_TARGETS=(${etc_vectors_not_meant})" HWY_IS_DEBUG_BUILD=0)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(etc_hwy INTERFACE HWY_BASELINE_TARGETS=HWY_AVX2)
endif()
# MPI, for several processes; without it the program runs as one process.
if(ETC_MPI)
  find_package(MPI COMPONENTS C QUIET)
  if(NOT MPI_C_FOUND)
    message(STATUS "MPI is missing: the program works in one process (apt-get install libopenmpi-dev openmpi-bin)")
  endif()
endif()
if(NOT ETC_HDF5)
  return()
endif()
# Debian's shared HDF5 loads 25 further libraries (curl, LDAP, Kerberos, …) for a driver that nobody here uses: 40 % of the
# time that `etc --help` takes. Executables are therefore linked with the archive of the same package. Its code is not
# position independent, so that shared libraries cannot contain it.
add_library(etc_hdf5 INTERFACE IMPORTED)
target_include_directories(etc_hdf5 INTERFACE ${hdf5_INCLUDE_DIRS})
set(etc_hdf5_libraries PkgConfig::hdf5)
if(ETC_HDF5_STATIC)
  # Only beside the shared library whose headers are used.
  find_library(ETC_HDF5_ARCHIVE libhdf5.a PATHS ${hdf5_LIBRARY_DIRS} NO_DEFAULT_PATH)
  find_library(ETC_SZ_LIBRARY sz)
  if(ETC_HDF5_ARCHIVE AND ETC_SZ_LIBRARY)
    set(etc_is_executable $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
    set(etc_hdf5_libraries $<${etc_is_executable}:${ETC_HDF5_ARCHIVE}>
                           $<${etc_is_executable}:${ETC_SZ_LIBRARY}> ZLIB::ZLIB ${CMAKE_DL_LIBS}
                           $<$<NOT:${etc_is_executable}>:PkgConfig::hdf5>)
  else()
    message(STATUS "libhdf5.a or libsz is missing: programs load the shared HDF5 and start later")
  endif()
endif()
target_link_libraries(etc_hdf5 INTERFACE ${etc_hdf5_libraries})
# The HTTP server; without its library `etc serve` reports an error.
pkg_check_modules(httplib IMPORTED_TARGET QUIET "cpp-httplib>=0.11" "cpp-httplib<0.12")
if(NOT httplib_FOUND)
  message(STATUS "cpp-httplib 0.11 is missing: etc serve is built without (apt-get install libcpp-httplib-dev)")
endif()
find_package(CLI11 CONFIG QUIET)
etc_require(CLI11::CLI11 CLI11 libcli11-dev)
if(ETC_TESTS)
  find_package(Catch2 CONFIG QUIET)
  etc_require(Catch2::Catch2 Catch2 "catch2 (or configure with -DETC_TESTS=OFF)")
endif()
