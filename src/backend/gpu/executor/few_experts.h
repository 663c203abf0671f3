#pragma once
/// What experts do for few rows, in two launches (kernels/expert_gate.h, kernels/expert_down.h).

#include "backend/gpu/executor/recorder.h"

namespace hearth::backend::gpu {

/// Whether one launch chooses the experts and does the first half of their work.
[[nodiscard]] bool takes_expert_gate(const plan::OpLaunch& router, const plan::ExpertGate& gate,
                                     const Recorder& recorder);

/// Records that.
void record_routed_gate(const plan::OpLaunch& router, const plan::ExpertGate& gate,
                        Recorder& recorder);

[[nodiscard]] bool takes_expert_down(const plan::ExpertDown& down, const Recorder& recorder);

/// Whether a projection is that of the expert which all rows share, added to what `down` gives, and
/// fits into the launch; `down` is taken.
[[nodiscard]] bool is_shared_expert(const plan::ExpertDown& down, const plan::Projection& shared,
                                    const Recorder& recorder);

/// Records a launch that is taken, with the shared expert unless that is null.
void record_expert_down(const plan::ExpertDown& down, const plan::Projection* shared,
                        Recorder& recorder);

}  // namespace hearth::backend::gpu
