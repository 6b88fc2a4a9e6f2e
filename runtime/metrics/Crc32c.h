// CRC-32C (Castagnoli; RFC 3720, appendix B.4): the check sum of TFRecord frames.
#pragma once

#include <cstdint>
#include <string_view>

namespace titan {

uint32_t crc32c(std::string_view bytes);

} // namespace titan
