// Where a job's file holds its weights and constants: behind the ELF image, so that nothing that
// code refers to moves with their size.
//
//   ELF image | zeros up to a multiple of 4096 | payload | u64 bytes of the payload | "TITANPAY"
//
// The number is little-endian. A job without a payload ends with its image.
#pragma once

#include "runtime/program/Error.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace titan {

static_assert(std::endian::native == std::endian::little);
inline constexpr uint64_t payloadPage = 4096;
inline constexpr std::string_view payloadMagic = "TITANPAY";

/// What follows a payload of `bytes` bytes.
inline std::string payloadEnd(uint64_t bytes) {
  std::string end(sizeof bytes, '\0');
  std::memcpy(end.data(), &bytes, sizeof bytes);
  return end.append(payloadMagic);
}

/// The payload of `bytes` bytes of a job's `file`. BadInput when the file does not end with it.
inline Result<std::string_view> findPayload(std::string_view file, uint64_t bytes) {
  const std::string end = payloadEnd(bytes);
  if (!file.ends_with(end) || bytes > file.size() - end.size())
    return Error::badInput("the job's file does not end with its {} bytes of weights: it was cut "
                           "or stripped: compile the job again",
                           bytes);
  return file.substr(file.size() - end.size() - bytes, bytes);
}

} // namespace titan
