# The four header libraries from ETC_HEADERS/include, for machines where they are not installed.
foreach(library IN ITEMS fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json etc_hwy)
  add_library(${library} INTERFACE IMPORTED)
  target_include_directories(${library} INTERFACE ${ETC_HEADERS}/include)
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_HEADER_ONLY SPDLOG_FMT_EXTERNAL)
target_link_libraries(spdlog::spdlog INTERFACE fmt::fmt)
