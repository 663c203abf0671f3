# Strings the Metal library's source together: cmake -DOUTPUT=... -DSOURCE_DIR=... "-DFILES=a;b" -P MetalSource.cmake
#
# Metal compiles at run time, from one text without includes. So files follow each other in the given order, without their
# #include "..." lines, which the order replaces, without #pragma once, and without our namespace, because entry points
# are looked up by plain name. Before them contraction is turned off, as it is for every other compiler: without fast math
# Metal's still rounds a*b+c once (Metal Shading Language Specification, options that control math). Writes OUTPUT.metal,
# and OUTPUT.cpp, which embeds it file by file: compilers limit the length of a string literal.

set(text "#pragma STDC FP_CONTRACT OFF\n\n")
set(parts "    R\"metal(${text})metal\"sv,\n")
math(EXPR N_PARTS "${N_FILES} + 1")
foreach(file IN LISTS FILES)
  file(READ "${SOURCE_DIR}/${file}" content)
  # Semicolons and brackets mean something to CMake's lists; here the text stays one string throughout.
  string(REGEX REPLACE "#include \"[^\n]*\n" "" content "${content}")
  string(REGEX REPLACE "#pragma once\n" "" content "${content}")
  string(REGEX REPLACE "namespace hearth::backend::gpu {\n" "" content "${content}")
  string(REGEX REPLACE "}  // namespace hearth::backend::gpu\n" "" content "${content}")
  string(REGEX REPLACE "\n\n\n+" "\n\n" content "${content}")
  set(content "// ${file}\n\n${content}\n")
  string(APPEND text "${content}")
  string(APPEND parts "    R\"metal(${content})metal\"sv,\n")
endforeach()
file(WRITE "${OUTPUT}.metal" "${text}")
file(WRITE "${OUTPUT}.cpp" "#include \"backend/gpu/metal/metal_source.h\"

#include <array>

namespace hearth::backend::gpu::metal {

std::string library_source() {
  using namespace std::string_view_literals;  // lengths that no compiler counts
  static constexpr std::array<std::string_view, ${N_PARTS}> parts{
${parts}  };
  std::string text;
  for (const std::string_view part : parts) {
    text += part;
  }
  return text;
}

}  // namespace hearth::backend::gpu::metal
")
