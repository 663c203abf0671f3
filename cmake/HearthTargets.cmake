# hearth_library(<folder> SOURCES ... [DEPS hearth::x ...] [PRIVATE_DEPS ...]): the static library of one folder of src/.
function(hearth_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(hearth_${name} STATIC ${ARG_SOURCES})
  add_library(hearth::${name} ALIAS hearth_${name})
  target_link_libraries(hearth_${name} PUBLIC hearth_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# hearth_test(<folder> SOURCES ... DEPS ... [LABELS unit|slow|e2e|gpu] [DATA name]): one test binary per folder.
# Each TEST becomes its own ctest entry, so a skipped test is counted as skipped.
# Tests find committed data under HEARTH_TESTS_DIR and public data under HEARTH_SHARED_DATA_DIR (may be absent).
function(hearth_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(hearth_${name}_test ${ARG_SOURCES})
  target_link_libraries(hearth_${name}_test PRIVATE hearth_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_include_directories(hearth_${name}_test PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(hearth_${name}_test PRIVATE
    HEARTH_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests"
    HEARTH_SHARED_DATA_DIR="${PROJECT_SOURCE_DIR}/../shared/data")
  gtest_discover_tests(hearth_${name}_test TEST_PREFIX "${name}: " DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}")
endfunction()
