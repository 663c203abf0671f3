# Runs a command and keeps what it says: cmake "-DCOMMAND=a;b" -DLOG=file -P RunWithLog.cmake
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
file(WRITE "${LOG}" "${output}")
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${output}")
endif()
