// Words of a PTX text, with their lines.
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace titan::ptx {

struct Token {
  enum class Kind : uint8_t {
    Word,        ///< a name, directive, mnemonic or register: [A-Za-z_$%.] then digits too
    Number,      ///< starts with a digit; 0f and 0d floats as well
    Text,        ///< between quotes, without them
    Mark,        ///< one character
    Declaration, ///< what stands behind `// titan:`
    ImplicitDef, ///< the register of LLVM's `// implicit-def: %r1`
    End,
  };
  Kind kind = Kind::End;
  std::string_view text;
  uint32_t line = 0;

  bool is(std::string_view other) const {
    return text == other && (kind == Kind::Word || kind == Kind::Mark);
  }
};

/// The last token is End. Comments are left out, but for the two that say something.
Result<std::vector<Token>> tokenize(std::string_view text);

} // namespace titan::ptx
