# Runs behind the build of a test program: writes FILE, which adds an entry of ctest for each test suite of PROGRAM.
# Its output names each case and how that went, which tools/test_summary.py counts. PREFIX begins the entries' names,
# LABELS are theirs; EXECUTOR is what runs the program, if not this machine; LEFT_OUT are patterns of GoogleTest for cases
# that do not run.
execute_process(
  COMMAND ${EXECUTOR} "${PROGRAM}" --gtest_list_tests "--gtest_filter=-${LEFT_OUT}"
  OUTPUT_VARIABLE list COMMAND_ERROR_IS_FATAL ANY TIMEOUT 60)

# A suite is a line "Name." or "Name.  # TypeParam = ..."; its cases stand below, indented.
string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\.[ \n]" lines "\n${list}")
set(entries "")
foreach(line IN LISTS lines)
  string(REGEX MATCH "[A-Za-z0-9_/]+" suite "${line}")
  string(APPEND entries
    "add_test([[${PREFIX}${suite}]] ${EXECUTOR} [[${PROGRAM}]] [[--gtest_filter=${suite}.*-${LEFT_OUT}]])\n"
    "set_tests_properties([[${PREFIX}${suite}]] PROPERTIES LABELS [[${LABELS}]])\n")
endforeach()
file(WRITE "${FILE}" "${entries}")
