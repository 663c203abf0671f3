/// What every kernel file includes first: shared headers, and the attributes of its functions. The
/// including file has defined HEARTH_ISA, its instructions, unless they are those of every file.
///
/// Functions carry an attribute instead of the file having compiler flags of its own, and entry
/// points that call shared headers are flattened: everything they call is inlined into them. So no
/// inline function of a shared header is ever emitted with instructions that another machine lacks,
/// which the linker might pick for everyone.
///
/// Functions that take or return vectors are always inlined, and constants used in lambdas are
/// static. (GCC 12 loses values otherwise.)

#if defined(HEARTH_ISA)
#define HEARTH_TARGET gnu::target(HEARTH_ISA)
#define HEARTH_INLINE gnu::target(HEARTH_ISA), gnu::always_inline
#define HEARTH_LAMBDA __attribute__((target(HEARTH_ISA), always_inline))
#else
#define HEARTH_TARGET gnu::hot  // nothing beyond what the compiler is told for every file
#define HEARTH_INLINE gnu::always_inline
#define HEARTH_LAMBDA __attribute__((always_inline))
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backend/cpu/kernels/kernel_set.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/lanes.h"
#include "base/math.h"
#include "graph/ops/delta_rule.h"
#include "graph/ops/rms_norm.h"
#include "graph/ops/router.h"
#include "quant/activation.h"
#include "quant/all_types.h"
#include "quant/decode.h"
