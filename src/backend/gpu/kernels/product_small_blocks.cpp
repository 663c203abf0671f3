// kernels/integer_product.h says how these work.

#include "backend/gpu/kernels/integer_product.h"
#include "backend/gpu/kernels/small_blocks.h"

namespace hearth::backend::gpu {

PRODUCT_KERNEL(product_q4_0, Q4_0_FORMAT)
PRODUCT_KERNEL(product_q4_1, Q4_1_FORMAT)
PRODUCT_KERNEL(product_q5_0, Q5_0_FORMAT)
PRODUCT_KERNEL(product_q5_1, Q5_1_FORMAT)
PRODUCT_KERNEL(product_q8_0, Q8_0_FORMAT)
PRODUCT_KERNEL(product_iq4_nl, IQ4_NL_FORMAT)
PRODUCT_KERNEL(product_mxfp4, MXFP4_FORMAT)
PRODUCT_KERNEL(product_nvfp4, NVFP4_FORMAT)

}  // namespace hearth::backend::gpu
