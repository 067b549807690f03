# The library for other projects, etc::etc: everything behind tasks/library/longetc.h in one file, liblongetc.a or, with
# ETC_SHARED, liblongetc.so, which exports only the symbols of that header. The program does not use it: it is linked with
# the library's parts. It computes on the CPU, whatever backends the program has.
set(etc_library_parts etc_base etc_sparse etc_data etc_data_small etc_core etc_core_small etc_decode etc_tasks etc_tasks_small)
set(etc_library_objects "")
foreach(part IN LISTS etc_library_parts)
  list(APPEND etc_library_objects $<TARGET_OBJECTS:${part}>)
endforeach()
if(ETC_SHARED)
  add_library(etc_library SHARED ${etc_library_objects})
else()
  add_library(etc_library STATIC ${etc_library_objects})
endif()
add_library(etc::etc ALIAS etc_library)
# SOVERSION: releases before 1.0 do not keep the API or ABI stable.
set_target_properties(etc_library PROPERTIES
  EXPORT_NAME etc OUTPUT_NAME longetc LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(etc_library INTERFACE cxx_std_17)
# The include path <etc/longetc.h> is the same in the build tree and when installed.
configure_file(${PROJECT_SOURCE_DIR}/tasks/library/longetc.h ${PROJECT_BINARY_DIR}/include/etc/longetc.h COPYONLY)
target_include_directories(etc_library INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                                 $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(etc_library PRIVATE
  OpenMP::OpenMP_CXX Threads::Threads fmt::fmt spdlog::spdlog PkgConfig::hdf5 PkgConfig::libdeflate
  simdjson::simdjson PkgConfig::sentencepiece ICU::i18n ICU::uc ZLIB::ZLIB Snappy::snappy OpenSSL::Crypto)
if(ETC_ONEDNN)
  target_link_libraries(etc_library PRIVATE etc_dnnl)
endif()
if(ETC_SHARED)
  # Dependencies of the parts are linked into the library; no symbol may be left for its users to resolve.
  set(etc_symbols ${CMAKE_CURRENT_LIST_DIR}/longetc.map)
  target_link_options(etc_library PRIVATE -Wl,--no-undefined "-Wl,--version-script=${etc_symbols}")
  set_target_properties(etc_library PROPERTIES LINK_DEPENDS ${etc_symbols})
endif()
