// kernels/integer_product.h says how these work.

#include "backend/gpu/kernels/integer_product.h"
#include "backend/gpu/kernels/k_blocks.h"

namespace hearth::backend::gpu {

PRODUCT_KERNEL(product_q2_k, Q2_K_FORMAT)
PRODUCT_KERNEL(product_q3_k, Q3_K_FORMAT)
PRODUCT_KERNEL(product_q4_k, Q4_K_FORMAT)
PRODUCT_KERNEL(product_q5_k, Q5_K_FORMAT)
PRODUCT_KERNEL(product_q6_k, Q6_K_FORMAT)
PRODUCT_KERNEL(product_iq4_xs, IQ4_XS_FORMAT)

}  // namespace hearth::backend::gpu
