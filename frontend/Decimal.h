// Constants as their author wrote them.
#pragma once

#include <charconv>
#include <cmath>

namespace titan::frontend {

/// The double that a source framework most likely rounded to `value`: the one with the shortest
/// decimal form. 0.1 is stored as the float 0.100000001; the model's author wrote 0.1.
inline double asWritten(float value) {
  double wide = static_cast<double>(value);
  if (!std::isfinite(value))
    return wide;
  char text[64];
  auto [end, error] = std::to_chars(text, text + sizeof text, value);
  if (error == std::errc())
    std::from_chars(text, end, wide);
  return wide;
}

} // namespace titan::frontend
