#include "tools/titan-ckpt/Format.h"

#include <fmt/format.h>

#include <algorithm>

namespace titan::ckpt {

std::string formatBytes(int64_t bytes) {
  if (bytes < 1000)
    return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* units[] = {"kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (value /= 1000; value >= 999.5 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return fmt::format("{:.3g} {}", value, units[unit]);
}

std::string formatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

} // namespace titan::ckpt
