// What a rank writes, line by line, with its name before each line.
#pragma once

#include <string>
#include <string_view>

namespace titan::launch {

/// Writes all of `text` to a file. What cannot be written is lost.
void writeAll(int file, std::string_view text);

class OutputLines {
public:
  /// A line that is longer is broken.
  static constexpr size_t longestLine = size_t{1} << 16;

  /// Lines go to `file` as "<prefix><line>\n".
  OutputLines(std::string prefix, int file) : prefix_(std::move(prefix)), file_(file) {}

  /// The next bytes that the rank wrote.
  void take(std::string_view bytes);
  /// Nothing more comes: what is left is a line.
  void end();

private:
  std::string prefix_;
  int file_;
  std::string rest_; ///< the begin of a line
};

} // namespace titan::launch
