/// Takes the place of all other files here when there is no nlohmann-json.

#include "base/fail.h"
#include "model/huggingface/open.h"

namespace hearth::model {

Result<Checkpoint> open_huggingface_folder(const std::filesystem::path& folder,
                                           ExpertLayout /*experts*/) {
  return fail(ErrorCode::unsupported,
              "{}: is a folder; this build cannot read Hugging Face folders, because it was made "
              "without nlohmann-json (Debian: nlohmann-json3-dev): install it and build again",
              folder.string());
}

}  // namespace hearth::model
