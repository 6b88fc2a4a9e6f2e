// A folder of compiled code, so that a changed recipe compiles only what it changes.
//
// DIR/titan-code-cache        a line of text: the format of the folder
// DIR/<digest of key>.code    an entry: its head, one line "titan-code <digest> <bytes>", and the
//                             code; both digests are digest128() (runtime/program/Text.h), that
//                             of the head is of the file's name, a line, and the code
//
// Several processes may use a folder at once: an entry is written under a name of its own and then
// renamed, and what is removed meanwhile is compiled again. A folder that cannot be used is no
// error: what is wrong with it becomes a note.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace titan::codegen {

class CodeCache {
public:
  /// Bytes of all entries; beyond them those that were used longest ago are removed.
  static constexpr int64_t defaultLimit = int64_t{256} << 20;

  /// Makes the folder where there is none. `compiler` tells apart all compilers that make other
  /// code of the same text.
  CodeCache(std::string directory, std::string compiler, int64_t limit = defaultLimit);

  /// The code that was stored for `key`, a text of any length, under the same compiler.
  std::optional<std::string> find(std::string_view key);
  void store(std::string_view key, std::string_view code);
  /// Keeps the folder within its limit, where something was stored.
  void trim();

  /// What made the cache useless, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

private:
  std::string pathOf(std::string_view key) const;
  /// Is the folder a cache of this format, or empty? Then it is one afterwards.
  bool open();
  void isUnusable(std::string_view what);
  /// Writes a file whole or not at all; false with errno.
  bool write(const std::string& path, std::string_view head, std::string_view bytes);

  std::string directory_, compiler_;
  int64_t limit_;
  bool reads_ = false, writes_ = false; ///< as far as nothing has gone wrong
  bool stored_ = false, damaged_ = false;
  std::vector<std::string> notes_;
};

} // namespace titan::codegen
