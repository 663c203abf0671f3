#include "output_file.h"

#include <filesystem>
#include <system_error>

#include "base/fail.h"

namespace hearth::app {

Result<void> check_output_file(const std::string& path, bool force) {
  std::error_code ignored;  // the writer will say it better
  if (std::filesystem::is_directory(path, ignored)) {
    return fail(ErrorCode::invalid_argument, "{}: is a folder, expected the name of a file", path);
  }
  if (!force && std::filesystem::exists(path, ignored)) {
    return fail(ErrorCode::invalid_argument, "{}: exists already; --force replaces it", path);
  }
  return {};
}

}  // namespace hearth::app
