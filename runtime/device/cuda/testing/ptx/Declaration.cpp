#include "runtime/device/cuda/testing/ptx/Declaration.h"

#include "runtime/device/cuda/testing/ptx/Cursor.h"

namespace titan::ptx {
namespace {

Result<Window> parseWindow(Cursor& cursor) {
  Window window;
  std::string_view direction = TITAN_TRY(cursor.word("read, write or both"));
  window.read = direction == "read" || direction == "both";
  window.written = direction == "write" || direction == "both";
  if (!window.read && !window.written)
    return Error::badInput("an operand is read, write or both, not '{}'", direction);
  uint64_t bytes = TITAN_TRY(cursor.number("bytes of an operand"));
  if (bytes > uint64_t{1} << 48)
    return Error::badInput("an operand of {} bytes is larger than any memory", bytes);
  window.bytes = static_cast<int64_t>(bytes);
  return window;
}

Result<Declaration> parseTokens(Cursor cursor) {
  Declaration result;
  result.entry = TITAN_TRY(cursor.word("the entry's name"));
  TITAN_TRY(cursor.expect("operands"));
  TITAN_TRY(cursor.expect("("));
  if (!cursor.accept(")")) {
    do
      result.windows.push_back(TITAN_TRY(parseWindow(cursor)));
    while (cursor.accept(","));
    TITAN_TRY(cursor.expect(")"));
  }
  TITAN_TRY(cursor.expect("scalars"));
  TITAN_TRY(cursor.expect("("));
  result.scalars = static_cast<int64_t>(TITAN_TRY(cursor.number("number of scalars")) & 0xffff);
  TITAN_TRY(cursor.expect(")"));
  if (!cursor.atEnd())
    return Error::badInput("'{}' stands behind scalars", cursor.peek().text);
  return result;
}

} // namespace

Result<Declaration> parseDeclaration(std::string_view text, uint32_t line) {
  Result<std::vector<Token>> tokens = tokenize(text);
  Result<Declaration> result =
      tokens.ok() ? parseTokens(Cursor(*tokens)) : Result<Declaration>(tokens.takeError());
  if (!result.ok())
    return errorAt(line, "in the titan line: {}", result.error().message());
  return result;
}

} // namespace titan::ptx
