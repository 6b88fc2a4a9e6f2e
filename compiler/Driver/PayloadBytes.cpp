#include "compiler/Driver/PayloadBytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace titan {

namespace {

constexpr std::array<char, 4096> zeros{};
constexpr int64_t pieceBytes = int64_t{1} << 20;

} // namespace

Status PayloadBytes::openFile(const PayloadPart& part) {
  if (part.path.empty())
    return {};
  Descriptor& file = files_[part.path];
  struct stat info;
  if (!file)
    file.reset(::open(part.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file || ::fstat(file.get(), &info) != 0)
    return Error::badInput("{}: {}: the model's initial weights are there (use --weights-dir, or "
                           "model.init = \"fresh\")",
                           part.path, std::strerror(errno));
  const auto bytes = static_cast<uint64_t>(info.st_size), size = static_cast<uint64_t>(part.size);
  if (part.fileOffset > bytes || size > bytes - part.fileOffset)
    return Error::badInput("{} has {} bytes, weights are at {} + {}", part.path, bytes,
                           part.fileOffset, size);
  return {};
}

Result<PayloadBytes> PayloadBytes::open(const std::vector<PayloadPart>& parts) {
  PayloadBytes payload(parts);
  for (const PayloadPart& part : parts)
    TITAN_TRY(payload.openFile(part));
  return payload;
}

Status PayloadBytes::copy(const PayloadPart& part, const link::ByteSink& sink) const {
  if (part.path.empty())
    return sink(part.bytes);
  const Descriptor& file = files_.at(part.path);
  std::string piece;
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  for (int64_t done = 0; done < part.size;) {
    piece.resize(static_cast<size_t>(std::min(pieceBytes, part.size - done)));
    const ssize_t got = retryInterrupted([&] {
      return ::pread(file.get(), piece.data(), piece.size(),
                     static_cast<off_t>(part.fileOffset) + done);
    });
    if (got < 0)
      return Error::badInput("{}: {}", part.path, std::strerror(errno));
    if (got == 0)
      break; // it became shorter: the digest tells
    piece.resize(static_cast<size_t>(got));
    XXH3_64bits_update(&digest, piece.data(), piece.size());
    TITAN_TRY(sink(piece));
    done += got;
  }
  if (XXH3_64bits_digest(&digest) != part.digest)
    return Error::badInput(
        "{} at {} + {}: the bytes are not those that the model was imported with", part.path,
        part.fileOffset, part.size);
  return {};
}

Status PayloadBytes::write(const link::ByteSink& sink) const {
  int64_t position = 0;
  for (const PayloadPart& part : *parts_) {
    while (position < part.offset) {
      const auto gap = std::min<int64_t>(part.offset - position, zeros.size());
      TITAN_TRY(sink({zeros.data(), static_cast<size_t>(gap)}));
      position += gap;
    }
    TITAN_TRY(copy(part, sink));
    position += part.size;
  }
  return {};
}

} // namespace titan
