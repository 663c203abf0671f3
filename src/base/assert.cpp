#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace hearth {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "hearth: internal error: %s is false at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace hearth
