#include "output_file.h"

#include <filesystem>
#include <system_error>

#include "base/fail.h"

namespace hearth::app {

Result<void> check_output_file(const std::string& path, bool force) {
  std::error_code ignored;  // the writer will say it better
  if (path.empty()) {
    return fail(ErrorCode::invalid_argument, "OUT: expected the name of a file, found ''");
  }
  if (std::filesystem::is_directory(path, ignored)) {
    return fail(ErrorCode::invalid_argument, "{}: is a folder, expected the name of a file", path);
  }
  // A device, such as /dev/null, would give way to the file.
  if (std::filesystem::is_other(path, ignored)) {
    return fail(ErrorCode::invalid_argument, "{}: is not a regular file", path);
  }
  if (!force && std::filesystem::exists(path, ignored)) {
    return fail(ErrorCode::invalid_argument, "{}: exists already; --force replaces it", path);
  }
  return {};
}

}  // namespace hearth::app
