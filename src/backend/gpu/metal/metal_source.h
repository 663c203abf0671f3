#pragma once

#include <string>
#include <string_view>

namespace hearth::backend::gpu::metal {

/// The source of the Metal library with every kernel, for Metal Shading Language 3.1. There is no
/// compiler for it where releases are built, so it is compiled on the user's machine.
std::string library_source();

}  // namespace hearth::backend::gpu::metal
