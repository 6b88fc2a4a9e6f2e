#include "runtime/job/Tables.h"

namespace titan {

std::string_view nameOf(StateKind kind) {
  switch (kind) {
  case StateKind::Param:
    return "param";
  case StateKind::Buffer:
    return "buffer";
  case StateKind::Slot:
    return "slot";
  case StateKind::Ema:
    return "ema";
  case StateKind::Counter:
    return "counter";
  }
  return "";
}

std::string readableBytes(int64_t bytes) {
  if (bytes < 1024)
    return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024)
      break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

} // namespace titan
