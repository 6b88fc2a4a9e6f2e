// Walks over tokens; errors name the line.
#pragma once

#include "runtime/device/cuda/testing/ptx/Lexer.h"

#include <charconv>
#include <optional>
#include <string>

namespace titan::ptx {

template <typename... Args>
Error errorAt(uint32_t line, fmt::format_string<Args...> format, Args&&... args) {
  return Error(ErrorCode::BadInput, fmt::format("PTX line {}: ", line) +
                                        fmt::format(format, std::forward<Args>(args)...));
}

/// An unsigned number as PTX writes it: decimal, 0x, 0b or 0 for octal, perhaps with a U behind.
inline std::optional<uint64_t> unsignedOf(std::string_view text) {
  if (text.ends_with('U'))
    text.remove_suffix(1);
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X"))
    base = 16;
  else if (text.starts_with("0b") || text.starts_with("0B"))
    base = 2;
  else if (text.size() > 1 && text[0] == '0')
    base = 8;
  text.remove_prefix(base == 16 || base == 2 ? 2 : 0);
  uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc() || end != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

class Cursor {
public:
  explicit Cursor(const std::vector<Token>& tokens) : tokens_(&tokens) {}

  const Token& peek(size_t ahead = 0) const {
    return (*tokens_)[std::min(at_ + ahead, tokens_->size() - 1)];
  }
  const Token& next() {
    const Token& token = peek();
    at_ = std::min(at_ + 1, tokens_->size() - 1);
    return token;
  }
  bool atEnd() const { return peek().kind == Token::Kind::End; }
  uint32_t line() const { return peek().line; }

  bool accept(std::string_view text) {
    if (!peek().is(text))
      return false;
    next();
    return true;
  }

  Status expect(std::string_view text) {
    if (accept(text))
      return {};
    return errorAt(line(), "expected '{}' before '{}'", text, peek().text);
  }

  Result<std::string_view> word(std::string_view what) {
    if (peek().kind != Token::Kind::Word)
      return errorAt(line(), "expected {} before '{}'", what, peek().text);
    return next().text;
  }

  /// Without a sign.
  Result<uint64_t> number(std::string_view what) {
    std::optional<uint64_t> value;
    if (peek().kind == Token::Kind::Number)
      value = unsignedOf(peek().text);
    if (!value)
      return errorAt(line(), "expected {} before '{}'", what, peek().text);
    next();
    return *value;
  }

  void skipLine() {
    for (uint32_t line = peek().line; !atEnd() && peek().line == line;)
      next();
  }

private:
  const std::vector<Token>* tokens_;
  size_t at_ = 0;
};

} // namespace titan::ptx
