#include "compiler/Driver/Output.h"

#include "compiler/Link/ScratchDirectory.h"

#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <fcntl.h>
#include <filesystem>

namespace titan {

namespace {

Status writeFile(const std::string& file, int flags, const std::string& path,
                 std::string_view text) {
  Descriptor descriptor(::open(file.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666));
  if (!descriptor || !writeAll(descriptor, text) || !descriptor.close())
    return Error::environment("{} cannot be written: {}", path, std::strerror(errno));
  return {};
}

} // namespace

Status writeOutput(const std::string& path, std::string_view text) {
  if (path.empty() || path == "-") {
    llvm::outs() << llvm::StringRef(text.data(), text.size());
    llvm::outs().flush();
    if (std::error_code failure = llvm::outs().error()) {
      llvm::outs().clear_error(); // or its destructor ends the process
      return Error::environment("stdout cannot be written: {}", failure.message());
    }
    return {};
  }
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_other(status))
    return writeFile(path, 0, path, text);
  const link::ScratchDirectory scratch = TITAN_TRY(link::ScratchDirectory::createBeside(path));
  TITAN_TRY(writeFile(scratch.file("text"), O_CREAT | O_EXCL, path, text));
  return scratch.publish("text", path);
}

} // namespace titan
