#pragma once

#include "model/checkpoint.h"

namespace hearth::model {

/// Gives a multi-token-prediction head that a GGUF file has under the names of training ("mtp.fc",
/// "mtp.layers.0...") its canonical names, as the block behind the trunk. Names below the layer may
/// be canonical already, and such a tensor counts as it is; under its name of training a norm is
/// stored as its distance from one, and experts may come one by one. A head that is not whole is
/// left out, with a note that names what is missing.
void adopt_mtp_tensors(Checkpoint::Parts& parts);

}  // namespace hearth::model
