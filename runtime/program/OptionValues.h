// What the parser of command lines would misread.
#pragma once

#include "runtime/program/Error.h"

#include <span>
#include <string>

namespace titan {

/// Refuses `--option=` with nothing behind it: CLI11 takes the next argument for its value.
inline Status checkOptionValues(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments)
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1)
      return Error::usage("{} has no value: write one behind the =, or leave the option out",
                          argument);
  return {};
}

} // namespace titan
