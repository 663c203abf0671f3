#pragma once
/// Every tensor type, ascending by number. A new type is a file in quant/types/ and a name here.
/// Those of GGUF files come first.

#include "quant/types/affine.h"
#include "quant/types/iq1_m.h"
#include "quant/types/iq1_s.h"
#include "quant/types/iq2_s.h"
#include "quant/types/iq2_xs.h"
#include "quant/types/iq2_xxs.h"
#include "quant/types/iq3_s.h"
#include "quant/types/iq3_xxs.h"
#include "quant/types/iq4_nl.h"
#include "quant/types/iq4_xs.h"
#include "quant/types/mxfp4.h"
#include "quant/types/nvfp4.h"
#include "quant/types/plain.h"
#include "quant/types/q1_0.h"
#include "quant/types/q2_0.h"
#include "quant/types/q2_k.h"
#include "quant/types/q3_k.h"
#include "quant/types/q4_0.h"
#include "quant/types/q4_1.h"
#include "quant/types/q4_k.h"
#include "quant/types/q5_0.h"
#include "quant/types/q5_1.h"
#include "quant/types/q5_k.h"
#include "quant/types/q6_k.h"
#include "quant/types/q8_0.h"
#include "quant/types/tq1_0.h"
#include "quant/types/tq2_0.h"

namespace hearth::quant {

template <class... Types>
struct TypeList {
  /// Calls function.template operator()<T>() for each type in turn.
  template <class Function>
  static constexpr void for_each(Function function) {
    (function.template operator()<Types>(), ...);
  }
};

using AllQuantTypes =
    TypeList<F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS,
             IQ3_XXS, IQ1_S, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, I8, I16, I32, I64, F64, IQ1_M, BF16,
             TQ1_0, TQ2_0, MXFP4, NVFP4, Q1_0, Q2_0, Affine<2, float>, Affine<3, float>,
             Affine<4, float>, Affine<5, float>, Affine<6, float>, Affine<8, float>,
             Affine<2, Half>, Affine<3, Half>, Affine<4, Half>, Affine<5, Half>, Affine<6, Half>,
             Affine<8, Half>, Affine<2, BFloat16>, Affine<3, BFloat16>, Affine<4, BFloat16>,
             Affine<5, BFloat16>, Affine<6, BFloat16>, Affine<8, BFloat16>>;

}  // namespace hearth::quant
