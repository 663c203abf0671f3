# macOS on Apple silicon, cross compiled by Zig, which brings the headers of macOS, libc++, and a linker that signs (PyPI's
# ziglang, which ./test installs into build/venv). It knows no framework: what is not in libSystem is loaded at run time.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_CXX_COMPILER "${CMAKE_CURRENT_LIST_DIR}/macos-c++.sh")
set(CMAKE_C_COMPILER "${CMAKE_CXX_COMPILER}")  # GoogleTest asks for one, and compiles nothing with it
set(CMAKE_INSTALL_NAME_TOOL true)  # the command: CMake asks for one, and nothing here is installed
# Unless told otherwise, Zig adds checks of undefined behaviour to builds that are not optimised.
set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined")

set(zig "\"${CMAKE_CURRENT_LIST_DIR}/../../build/venv/bin/python\" -m ziglang")
set(CMAKE_CXX_ARCHIVE_CREATE "${zig} ar qc <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "${zig} ar q <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "${zig} ranlib <TARGET>")

# Libraries of this machine are of no use there. Its tests are not run here.
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)
# What the compiler knows shows without linking.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
