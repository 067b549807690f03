# Backends besides the CPU's. A backend consists of the folders etc_core/base/NAME, sparse/NAME, etc_core/ops/NAME and
# etc_core/nn/NAME and a line etc_backend(…) in CMakeLists.txt (etc_core/README.md, "Adding a backend").
set(ETC_BACKENDS "")      # backends of this build
set(ETC_DEVICE_NAMES "")  # of all backends that have code, in the form that etc_core/base/known_devices.h.in needs
set(ETC_DEVICE_INFOS "")

# etc_backend(NAME NEEDS HELP): option ETC_NAME builds the backend; NEEDS: its requirements; HELP: the text of --help for
# --device NAME. A macro, because toolchains enable languages, which is not possible in functions.
macro(etc_backend name needs help)
  string(TOUPPER ${name} etc_backend_upper)
  option(ETC_${etc_backend_upper} "Build the ${etc_backend_upper} backend (needs ${needs})" OFF)
  string(APPEND ETC_DEVICE_NAMES ", ${name}")
  string(APPEND ETC_DEVICE_INFOS "    {\"${name}\", \"configure with -DETC_${etc_backend_upper}=ON\", \"${help}\"},\n")
  if(ETC_${etc_backend_upper})
    list(APPEND ETC_BACKENDS ${name})
    include(etc_core/base/${name}/toolchain.cmake OPTIONAL)
  endif()
endmacro()

# Adds the folders of the backends of this build, layer by layer.
macro(etc_add_backend_folders)
  foreach(etc_backend_name IN LISTS ETC_BACKENDS)
    foreach(etc_backend_layer IN ITEMS etc_core/base etc_core/comm sparse etc_core/ops etc_core/nn)
      if(EXISTS ${PROJECT_SOURCE_DIR}/${etc_backend_layer}/${etc_backend_name})
        add_subdirectory(${etc_backend_layer}/${etc_backend_name})
      endif()
    endforeach()
  endforeach()
endmacro()
