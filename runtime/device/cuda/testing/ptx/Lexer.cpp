#include "runtime/device/cuda/testing/ptx/Lexer.h"

namespace titan::ptx {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool startsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' ||
         c == '.';
}
bool continuesWord(char c) { return startsWord(c) || isDigit(c); }
bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isSpace(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && isSpace(text.back()))
    text.remove_suffix(1);
  return text;
}

class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size())
      TITAN_TRY(next());
    push(Token::Kind::End, {});
    return std::move(tokens_);
  }

private:
  Status next() {
    char c = text_[at_];
    if (isSpace(c)) {
      line_ += c == '\n';
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      lineComment();
    } else if (text_.substr(at_, 2) == "/*") {
      return blockComment();
    } else if (c == '"') {
      return quoted();
    } else if (startsWord(c)) {
      word();
    } else if (isDigit(c)) {
      take(Token::Kind::Number, [](char d) { return continuesWord(d); });
    } else if (std::string_view("{}()[]<>,;:@!|+-=*").find(c) != std::string_view::npos) {
      push(Token::Kind::Mark, text_.substr(at_++, 1));
    } else {
      return Error::badInput("PTX line {}: no instruction has the character 0x{:02x}", line_,
                             static_cast<unsigned char>(c));
    }
    return {};
  }

  /// A mnemonic may have `::` inside: ld.global.L1::no_allocate.
  void word() {
    size_t start = at_;
    while (at_ < text_.size() && (continuesWord(text_[at_]) || text_.substr(at_, 2) == "::" ||
                                  (text_[at_] == ':' && at_ > start && text_[at_ - 1] == ':')))
      ++at_;
    push(Token::Kind::Word, text_.substr(start, at_ - start));
  }

  template <typename Continues> void take(Token::Kind kind, Continues continues) {
    size_t start = at_;
    while (at_ < text_.size() && continues(text_[at_]))
      ++at_;
    push(kind, text_.substr(start, at_ - start));
  }

  void lineComment() {
    size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view comment = trimmed(text_.substr(at_ + 2, end - at_ - 2));
    constexpr std::string_view titan = "titan:", implicit = "implicit-def:";
    if (comment.starts_with(titan))
      push(Token::Kind::Declaration, trimmed(comment.substr(titan.size())));
    else if (comment.starts_with(implicit))
      push(Token::Kind::ImplicitDef, trimmed(comment.substr(implicit.size())));
    at_ = end;
  }

  Status blockComment() {
    size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos)
      return Error::badInput("PTX line {}: a comment that does not end", line_);
    for (; at_ < end + 2; ++at_)
      line_ += text_[at_] == '\n';
    return {};
  }

  Status quoted() {
    size_t end = text_.find_first_of("\"\n", at_ + 1);
    if (end == std::string_view::npos || text_[end] == '\n')
      return Error::badInput("PTX line {}: a quoted text that does not end", line_);
    push(Token::Kind::Text, text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return {};
  }

  void push(Token::Kind kind, std::string_view text) { tokens_.push_back({kind, text, line_}); }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

} // namespace

Result<std::vector<Token>> tokenize(std::string_view text) { return Lexer(text).run(); }

} // namespace titan::ptx
