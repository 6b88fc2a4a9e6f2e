// A directory beside an output: what is made in it is nobody else's, and one rename away from its
// place.
#pragma once

#include "runtime/program/Error.h"
#include "runtime/program/File.h"

#include <string>
#include <string_view>

namespace titan::link {

/// Removed at the end, with everything in it.
class ScratchDirectory {
public:
  /// Environment: `output` stands where no file can be put, or its directory cannot be written.
  static Result<ScratchDirectory> createBeside(const std::string& output);
  ScratchDirectory(ScratchDirectory&& other) noexcept = default;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  /// The path of a file in it, through the directory's descriptor. So it is short and has no `%`,
  /// whatever the output is called: LLVM replaces every `%` in the path of a file that it creates.
  std::string file(std::string_view name) const;
  /// Moves `file(name)` to `output`. Who has an old output open keeps it.
  Status publish(std::string_view name, const std::string& output) const;

private:
  ScratchDirectory(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}
  std::string path_;
  Descriptor descriptor_;
};

} // namespace titan::link
