/// Takes the place of all other files here when there is no nlohmann-json.

#include "base/fail.h"
#include "model/huggingface/mtp_in_gguf.h"
#include "model/huggingface/open.h"

namespace hearth::model {

Result<Checkpoint> open_huggingface_folder(const std::filesystem::path& folder,
                                           ExpertLayout /*experts*/) {
  return fail(ErrorCode::unsupported,
              "{}: is a folder; this build cannot read Hugging Face folders, because it was made "
              "without nlohmann-json (Debian: nlohmann-json3-dev): install it and build again",
              folder.string());
}

void adopt_mtp_tensors(Checkpoint::Parts& parts) {
  const auto n_left_out = std::erase_if(parts.tensors, [](const CheckpointTensor& tensor) {
    return tensor.name.starts_with("mtp.") || tensor.name.starts_with("model.mtp.");
  });
  if (n_left_out > 0) {
    parts.notes.push_back(
        format("{} tensors of an MTP head (mtp.*) are left out: this build was made without "
               "nlohmann-json, with which their names are known",
               n_left_out));
  }
}

}  // namespace hearth::model
