// A kernel that takes less of a write than it is given. Link ShortWrites.cpp into the test itself:
// it replaces write(2).
#pragma once

#include <cstddef>
#include <functional>

#include <sys/types.h>

namespace titan::checkpoint {

/// While it lives, of each write to a regular file, past the page cache (`isDirect`) or into it,
/// take(bytes, isDirect) bytes are taken; a negative number is an error, -EINTR for instance.
class ShortWrites {
public:
  using Take = std::function<ssize_t(size_t bytes, bool isDirect)>;

  explicit ShortWrites(Take take);
  ~ShortWrites();
  ShortWrites(const ShortWrites&) = delete;
  ShortWrites& operator=(const ShortWrites&) = delete;
};

} // namespace titan::checkpoint
