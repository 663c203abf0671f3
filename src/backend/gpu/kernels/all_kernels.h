#pragma once
/// Every kernel, by name. A test compares the list with the kernel files and with what CUDA and
/// Metal get; everything else about a kernel (buffers, parameters, threads) comes from its own
/// text.

#define HEARTH_GPU_KERNELS(X) \
  X(add_f32)                  \
  X(attention_combine_f32)    \
  X(attention_part_f16)       \
  X(delta_rule_f32)           \
  X(embed_f16)                \
  X(embed_q4_k)               \
  X(embed_q6_k)               \
  X(embed_q8_0)               \
  X(geglu_f32)                \
  X(kv_store_f16)             \
  X(matmul_f16)               \
  X(matvec_q4_k)              \
  X(matvec_q6_k)              \
  X(matvec_q8_0)              \
  X(rms_norm_f32)             \
  X(rope_f32)                 \
  X(router_f32)               \
  X(swiglu_f32)
