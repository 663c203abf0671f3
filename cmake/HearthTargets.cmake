# hearth_precompile(<name> HEADERS ... [DEPS ...]): headers that cost most files more than their own text, compiled once,
# for target_precompile_headers(... REUSE_FROM <name>).
function(hearth_precompile name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "")
  add_library(${name} OBJECT "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE hearth_options ${ARG_DEPS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  # ccache compares the precompiled file, which must not differ by its date.
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
endfunction()

# The folders that read hostile input: libFuzzer follows what an input reaches in them. The code of the others is not
# instrumented for it, which halves the time of their tests.
set(HEARTH_FUZZED_FOLDERS base tensor quant formats tokenizer chat model)

# hearth_fuzzed(<target>): instruments a target for the fuzzers.
function(hearth_fuzzed target)
  target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
endfunction()

# GCC 12 warns of std::string's own copies (GCC bug 105651), and precompiled headers are no system headers to it.
function(hearth_reuse_headers target name)
  target_precompile_headers(${target} REUSE_FROM ${name})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow>)
endfunction()

# hearth_unity(<target> ON|OFF): whether several files are compiled as one, for folders of many small files; names in
# their anonymous namespaces then have to differ. Every file includes what it uses all the same: ./test --all builds the
# core preset one by one.
function(hearth_unity target wanted)
  if(wanted AND HEARTH_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 9)
  endif()
endfunction()

# hearth_library(<folder> [UNITY] SOURCES ... [DEPS hearth::x ...] [PRIVATE_DEPS ...]): the static library of one folder of src/.
function(hearth_library name)
  cmake_parse_arguments(ARG "UNITY" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(hearth_${name} STATIC ${ARG_SOURCES})
  add_library(hearth::${name} ALIAS hearth_${name})
  target_link_libraries(hearth_${name} PUBLIC hearth_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  hearth_unity(hearth_${name} ${ARG_UNITY})
  set(headers hearth_library_headers)
  if(HEARTH_FUZZ AND name IN_LIST HEARTH_FUZZED_FOLDERS)
    hearth_fuzzed(hearth_${name})
    set(headers hearth_fuzzed_library_headers)
  endif()
  hearth_reuse_headers(hearth_${name} ${headers})
endfunction()

# hearth_add_suites(<folder> <labels>): the entries of ctest for a test program, which exist once it is built.
function(hearth_add_suites name labels)
  set(target hearth_${name}_test)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake")
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND "${CMAKE_COMMAND}" "-DFILE=${file}" "-DPROGRAM=$<TARGET_FILE:${target}>" "-DPREFIX=${name}:" "-DLABELS=${labels}"
      "-DEXECUTOR=${CMAKE_CROSSCOMPILING_EMULATOR}" "-DLEFT_OUT=${HEARTH_TESTS_LEFT_OUT}"
      -P "${PROJECT_SOURCE_DIR}/cmake/AddTestSuites.cmake")
  # A program that is not built is a test that cannot run.
  set(entries "${CMAKE_CURRENT_BINARY_DIR}/${target}_entries.cmake")
  file(WRITE "${entries}" "if(EXISTS [[${file}]])\n  include([[${file}]])\nelse()\n  add_test(${target}_NOT_BUILT ${target}_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${entries}")
endfunction()

# hearth_test(<folder> [UNITY] SOURCES ... DEPS ... [LABELS unit|slow|e2e|gpu]): one test binary per folder.
# Each test suite becomes an entry of ctest: with one for each TEST, starting a thousand programs took longer than most tests.
# Tests find committed data under HEARTH_TESTS_DIR and public data under HEARTH_SHARED_DATA_DIR (may be absent).
function(hearth_test name)
  cmake_parse_arguments(ARG "UNITY" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(hearth_${name}_test ${ARG_SOURCES})
  target_link_libraries(hearth_${name}_test PRIVATE hearth_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_options(hearth_${name}_test PRIVATE ${HEARTH_TEST_OPTIONS})
  hearth_unity(hearth_${name}_test ${ARG_UNITY})
  hearth_reuse_headers(hearth_${name}_test hearth_test_headers)
  target_include_directories(hearth_${name}_test PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(hearth_${name}_test PRIVATE
    HEARTH_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests"
    HEARTH_SHARED_DATA_DIR="${PROJECT_SOURCE_DIR}/../shared/data")
  if(HEARTH_SANITIZE)
    target_compile_definitions(hearth_${name}_test PRIVATE HEARTH_SANITIZED)
  endif()
  if(HEARTH_SANITIZE MATCHES "address")
    target_compile_definitions(hearth_${name}_test PRIVATE HEARTH_TEST_THREADS=1)
  else()
    target_compile_definitions(hearth_${name}_test PRIVATE HEARTH_TEST_THREADS=2)
  endif()
  hearth_add_suites(${name} "${ARG_LABELS}")
endfunction()

# hearth_fuzz(<name> DEPS ...): the libFuzzer target tests/fuzz/<name>_fuzz.cpp; its seeds and past crashes
# are tests/fuzz/corpus/<name>/. All of them build as hearth_fuzzers, and tools/fuzz.sh runs each for a while.
function(hearth_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(hearth_${name}_fuzz ${name}_fuzz.cpp)
  target_link_libraries(hearth_${name}_fuzz PRIVATE hearth_options ${ARG_DEPS})
  hearth_fuzzed(hearth_${name}_fuzz)
  target_link_options(hearth_${name}_fuzz PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET hearth_fuzzers)
    add_custom_target(hearth_fuzzers)
  endif()
  add_dependencies(hearth_fuzzers hearth_${name}_fuzz)
endfunction()

# hearth_python_test(<name> SCRIPT <file.py> [ARGS ...] [LABELS ...]): a Python script as a test; exit status 77 means skipped.
# It runs in the virtual environment that ./test makes, where that exists, and in plain python3 otherwise.
function(hearth_python_test name)
  cmake_parse_arguments(ARG "" "SCRIPT" "ARGS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(python "${PROJECT_SOURCE_DIR}/build/venv/bin/python")
  if(NOT EXISTS "${python}")
    set(python "${Python3_EXECUTABLE}")
  endif()
  add_test(NAME "${name}" COMMAND "${python}" "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SCRIPT}" ${ARG_ARGS})
  set_tests_properties("${name}" PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77)
endfunction()
