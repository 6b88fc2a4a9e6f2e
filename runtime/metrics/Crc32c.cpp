#include "runtime/metrics/Crc32c.h"

#include <array>

namespace titan {

namespace {

constexpr uint32_t polynomial = 0x82f63b78; // bit-reversed 0x1edc6f41

constexpr std::array<uint32_t, 256> table = [] {
  std::array<uint32_t, 256> entries = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc & 1 ? crc >> 1 ^ polynomial : crc >> 1;
    entries[byte] = crc;
  }
  return entries;
}();

} // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (char byte : bytes)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

} // namespace titan
