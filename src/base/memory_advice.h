#pragma once
/// Hints to the operating system about memory. None changes what a program computes, so none can
/// fail.

#include <span>

#include "base/bytes.h"

namespace hearth {

/// Large pages would serve this memory well: it is big, lives long, and is read throughout.
void advise_huge_pages(std::span<std::byte> memory);

/// This part of a mapped file is not read again soon. Its pages stop counting as ours, and come
/// back from the file when touched. Not for other memory, whose content would be lost.
void drop_mapped_pages(Bytes mapping);

}  // namespace hearth
