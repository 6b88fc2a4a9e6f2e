// Small formatters that the printed tables share.
#pragma once

#include "runtime/program/Program.h"

#include <string>
#include <string_view>

namespace titan {

/// "param", "buffer", "slot", "ema", "counter"
std::string_view nameOf(StateKind kind);
/// "1.5 MiB"
std::string readableBytes(int64_t bytes);

} // namespace titan
