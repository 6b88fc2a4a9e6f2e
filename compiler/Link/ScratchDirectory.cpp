#include "compiler/Link/ScratchDirectory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>

namespace titan::link {

namespace {

namespace fs = std::filesystem;

/// Of the output's name, so that it says what is being made and is no longer than a name can be.
constexpr size_t longestName = 200;

Error cannotWrite(const std::string& output, const std::string& why) {
  return Error::environment("{} cannot be written: {}", output, why);
}

} // namespace

Result<ScratchDirectory> ScratchDirectory::createBeside(const std::string& output) {
  std::error_code ignored;
  const fs::file_status status = fs::status(output, ignored);
  if (fs::is_directory(status))
    return cannotWrite(output, std::strerror(EISDIR));
  if (fs::exists(status) && !fs::is_regular_file(status))
    return cannotWrite(output, "it is there and not a regular file");
  const fs::path place(output);
  std::string path = (place.parent_path() /
                      (place.filename().string().substr(0, longestName) + ".unfinished-XXXXXX"))
                         .string();
  if (!mkdtemp(path.data()))
    return cannotWrite(output, std::strerror(errno));
  ScratchDirectory scratch(path,
                           Descriptor(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
  if (!scratch.descriptor_)
    return cannotWrite(output, std::strerror(errno));
  return scratch;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (descriptor_)
    fs::remove_all(path_, ignored);
}

std::string ScratchDirectory::file(std::string_view name) const {
  return fmt::format("/proc/self/fd/{}/{}", descriptor_.get(), name);
}

Status ScratchDirectory::publish(std::string_view name, const std::string& output) const {
  std::error_code failure;
  fs::rename(file(name), output, failure);
  if (failure)
    return cannotWrite(output, failure.message());
  return {};
}

} // namespace titan::link
