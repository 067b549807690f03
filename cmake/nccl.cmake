# NCCL, for messages between GPUs: from the system (Debian: libnccl-dev), the package nvidia-nccl-cu13 in build/python
# of this checkout, or the folder ETC_NCCL_ROOT. Defines etc_nccl_library if header and library are found.
set(ETC_NCCL_ROOT "" CACHE PATH "Folder with include/nccl.h and lib/libnccl.so.2, where NCCL is in no usual place")
file(GLOB etc_nccl_packages "${PROJECT_SOURCE_DIR}/build/python/lib/python3*/site-packages/nvidia/nccl")
find_path(ETC_NCCL_INCLUDE nccl.h HINTS ${ETC_NCCL_ROOT} ${etc_nccl_packages} PATH_SUFFIXES include)
find_library(ETC_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${ETC_NCCL_ROOT} ${etc_nccl_packages} PATH_SUFFIXES lib)
mark_as_advanced(ETC_NCCL_INCLUDE ETC_NCCL_LIBRARY)
if(ETC_NCCL_INCLUDE AND ETC_NCCL_LIBRARY)
  add_library(etc_nccl_library INTERFACE)
  target_include_directories(etc_nccl_library SYSTEM INTERFACE ${ETC_NCCL_INCLUDE})
  target_link_libraries(etc_nccl_library INTERFACE ${ETC_NCCL_LIBRARY})
elseif(ETC_CUDA)
  message(STATUS "NCCL is missing: GPUs' gradients travel through the hosts (libnccl-dev, or -DETC_NCCL_ROOT=FOLDER)")
endif()
