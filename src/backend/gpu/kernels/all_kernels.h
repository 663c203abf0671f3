#pragma once
/// Every kernel, by name. A test compares the list with the kernel files and with what CUDA and
/// Metal get; everything else about a kernel (buffers, parameters, threads) comes from its own
/// text.

#define HEARTH_GPU_KERNELS(X) \
  X(activation_f32)           \
  X(add_f32)                  \
  X(argmax_f32)               \
  X(argmax_part_f32)          \
  X(attention_bf16)           \
  X(attention_combine_f32)    \
  X(attention_f16)            \
  X(attention_f32)            \
  X(attention_q4_0)           \
  X(attention_q8_0)           \
  X(attention_store_bf16)     \
  X(attention_store_f16)      \
  X(attention_store_f32)      \
  X(attention_store_q4_0)     \
  X(attention_store_q8_0)     \
  X(causal_conv_f32)          \
  X(columns_f32)              \
  X(concat_f32)               \
  X(delta_rule_128_f32)       \
  X(delta_rule_f32)           \
  X(embed_f16)                \
  X(embed_q4_k)               \
  X(embed_q6_k)               \
  X(embed_q8_0)               \
  X(gated_f32)                \
  X(gather_rows_f32)          \
  X(matmul_f16)               \
  X(matvec_q4_k)              \
  X(matvec_q6_k)              \
  X(matvec_q8_0)              \
  X(mul_f32)                  \
  X(rms_norm_f32)             \
  X(rope_f32)                 \
  X(router_f32)               \
  X(softcap_f32)              \
  X(store_rows_f32)
