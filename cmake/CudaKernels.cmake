# hearth_cuda_kernels(<target> <kernel files...>): compiles GPU kernels as CUDA and embeds them in the target, where there is
# an nvcc; elsewhere the target knows that it has none (src/backend/gpu/cuda/fatbin.h). Only the compiler is needed: nothing
# of the toolkit is linked, and the driver is loaded at run time.

set(HEARTH_CUDA AUTO CACHE STRING "Compile the GPU kernels as CUDA: ON, OFF, or AUTO: where there is an nvcc")
set(HEARTH_CUDA_ARCHITECTURES 80 89 90 100 120 CACHE STRING
  "Compute capabilities to compile for; newer ones compile the text of the first when they load it")
set(HEARTH_NVCC "" CACHE INTERNAL "The nvcc that compiles the kernels, or nothing")
if(HEARTH_CUDA)
  find_program(HEARTH_NVCC_PROGRAM nvcc HINTS /usr/local/cuda/bin)
  if(HEARTH_NVCC_PROGRAM)
    set(HEARTH_NVCC "${HEARTH_NVCC_PROGRAM}" CACHE INTERNAL "")
  elseif(HEARTH_CUDA STREQUAL "AUTO")
    message(STATUS "No nvcc: built without CUDA kernels")
  else()
    message(FATAL_ERROR "HEARTH_CUDA is ${HEARTH_CUDA}, but there is no nvcc")
  endif()
endif()

function(hearth_cuda_kernels target)
  if(NOT HEARTH_NVCC)
    target_sources(${target} PRIVATE cuda/fatbin_absent.cpp)
    return()
  endif()

  # One translation unit, because reading the headers is most of the work.
  set(base "${CMAKE_CURRENT_BINARY_DIR}/cuda_kernels")
  set(includes "")
  foreach(file IN LISTS ARGN)
    string(APPEND includes "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${base}.cu" CONTENT "${includes}")

  execute_process(COMMAND "${HEARTH_NVCC}" --list-gpu-code OUTPUT_VARIABLE known OUTPUT_STRIP_TRAILING_WHITESPACE)
  # Two texts, since kernels ask only whether they are compiled for 9.0 or newer (dialect/cuda_entry.h): the compiler
  # proper is most of the time, and the assembler makes code for several architectures of one text.
  set(first_text "")
  foreach(architecture IN LISTS HEARTH_CUDA_ARCHITECTURES)
    if(NOT known MATCHES "sm_${architecture}(\n|$)")
      message(STATUS "This nvcc does not know sm_${architecture}: left out")
      continue()
    endif()
    set(text 80)
    if(NOT architecture LESS 90)
      set(text 90)
    endif()
    if(NOT first_text)
      set(first_text ${text})
      set(code_of_${text} compute_${text})
    endif()
    string(APPEND code_of_${text} ",sm_${architecture}")
  endforeach()
  set(code "")
  foreach(text 80 90)
    if(code_of_${text})
      string(REGEX REPLACE "^," "" code_of_${text} "${code_of_${text}}")
      list(APPEND code -gencode "arch=compute_${text},code=[${code_of_${text}}]")
    endif()
  endforeach()

  # nvcc names the text that it keeps after its architecture where there are two.
  set(kept_text "cuda_kernels.ptx")
  if(code_of_80 AND code_of_90)
    set(kept_text "cuda_kernels.compute_${first_text}.ptx")
  endif()

  # Contraction off, as in every other compiler: a kernel says where it wants a fused multiply-add.
  set(options -std=c++20 -fmad=false "-I${PROJECT_SOURCE_DIR}/src")
  # Not CONFIGURE_DEPENDS, which gives every build a step, so that ./run would always say that it builds. A header that is
  # new comes with its line in the caller's lists, and the folders are read again then.
  file(GLOB headers dialect/*.h kernels/*.h)
  add_custom_command(
    OUTPUT "${base}.fatbin" "${base}_hash.h" "${base}.log" "${base}.ptx"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${base}_parts"
    COMMAND "${CMAKE_COMMAND}" "-DLOG=${base}.log"
            "-DCOMMAND=${HEARTH_NVCC};${options};-fatbin;${code};--compress-mode=size;-Xptxas=-v;--keep;--keep-dir;${base}_parts;${base}.cu;-o;${base}.fatbin"
            -P "${PROJECT_SOURCE_DIR}/cmake/RunWithLog.cmake"
    COMMAND "${CMAKE_COMMAND}" -E rename "${base}_parts/${kept_text}" "${base}.ptx"
    COMMAND "${CMAKE_COMMAND}" -E rm -r "${base}_parts"
    COMMAND "${CMAKE_COMMAND}" "-DFILE=${base}.fatbin" "-DOUTPUT=${base}_hash.h" -P "${PROJECT_SOURCE_DIR}/cmake/WriteHash.cmake"
    DEPENDS ${ARGN} ${headers} "${base}.cu" "${PROJECT_SOURCE_DIR}/cmake/RunWithLog.cmake" "${PROJECT_SOURCE_DIR}/cmake/WriteHash.cmake"
    COMMENT "Compiling GPU kernels as CUDA"
    VERBATIM)
  set(fatbin "${base}.fatbin")
  set(fatbin_hash "${base}_hash.h")
  configure_file(cuda/fatbin.cpp.in "${base}_fatbin.cpp" @ONLY)
  set_source_files_properties("${base}_fatbin.cpp" PROPERTIES
    OBJECT_DEPENDS "${base}.fatbin;${base}_hash.h" SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE "${base}_fatbin.cpp")
endfunction()
