# hearth_options: language level, warnings and sanitizers, linked by every target of ours.
#
# The core needs results and formatting. Debian 12's compiler has neither std::expected nor std::format,
# so there they come from tl::expected and fmt; a machine without those packages needs a compiler that
# has both in its C++23 library (GCC 13, clang 17 with libc++). base/result.h and base/format.h choose.

include(CheckCXXSourceCompiles)

add_library(hearth_options INTERFACE)
target_include_directories(hearth_options INTERFACE "${PROJECT_SOURCE_DIR}/src")

find_package(fmt QUIET)
find_package(tl-expected QUIET)
if(fmt_FOUND AND tl-expected_FOUND)
  target_compile_features(hearth_options INTERFACE cxx_std_20)
  # The machine that cross compiles has the library for itself only.
  target_link_libraries(hearth_options INTERFACE
    $<IF:$<BOOL:${CMAKE_CROSSCOMPILING}>,fmt::fmt-header-only,fmt::fmt> tl::expected)
else()
  set(CMAKE_REQUIRED_FLAGS "-std=c++23")
  check_cxx_source_compiles(
    "#include <expected>\n#include <format>\nint main() { std::expected<int, int> x = 0; return *x + static_cast<int>(std::format(\"{}\", 0).size()) - 1; }"
    HEARTH_STD_FORMAT_AND_EXPECTED)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT HEARTH_STD_FORMAT_AND_EXPECTED)
    message(FATAL_ERROR "Needs fmt and tl-expected (Debian: libfmt-dev libexpected-dev), or a compiler with std::format and std::expected.")
  endif()
  target_compile_features(hearth_options INTERFACE cxx_std_23)
  target_compile_definitions(hearth_options INTERFACE HEARTH_STD_FORMAT_AND_EXPECTED)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)

# libc++ has std::jthread and std::stop_token, complete and header-only, but hides them up to version 19.
set(CMAKE_REQUIRED_FLAGS "-std=c++20")
check_cxx_source_compiles("#include <thread>\nint main() { std::jthread thread; }" HEARTH_JTHREAD)
unset(CMAKE_REQUIRED_FLAGS)
if(NOT HEARTH_JTHREAD)
  target_compile_definitions(hearth_options INTERFACE _LIBCPP_ENABLE_EXPERIMENTAL)
endif()

# Contraction off: a*b+c rounds twice unless the source says fma, so every build gives the same bits.
target_compile_options(hearth_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers  # designated initialisers leave the rest at its defaults
  -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -ffp-contract=off
  # Optimising, GCC 12 takes variants and optionals that are moved for uninitialised (GCC bug 80635).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

# Left out: null and object-size, because the address sanitizer reports such accesses itself, and vptr, which checks
# casts to derived classes. Files compile a sixth faster without them.
if(HEARTH_SANITIZE)
  target_compile_options(hearth_options INTERFACE
    -fsanitize=${HEARTH_SANITIZE} -fno-sanitize=null,object-size,vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(hearth_options INTERFACE -fsanitize=${HEARTH_SANITIZE})
endif()
find_package(Threads REQUIRED)

find_program(HEARTH_CCACHE ccache)
if(HEARTH_CCACHE)
  # The sloppiness is what ccache's manual asks for to cache files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${HEARTH_CCACHE}")
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
