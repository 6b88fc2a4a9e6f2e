// Figures and tables for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace titan::ckpt {

/// "512 B", "1.5 MB": powers of 1000.
std::string formatBytes(int64_t bytes);
/// Columns padded to their widest cell, two spaces between them; the first row is the head.
std::string formatTable(const std::vector<std::vector<std::string>>& rows);

} // namespace titan::ckpt
