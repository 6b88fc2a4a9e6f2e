#include "compiler/Driver/PayloadBytes.h"

#include "llvm/Support/xxhash.h"

#include <algorithm>
#include <array>

namespace titan {

namespace {

constexpr std::array<char, 4096> zeros{};

} // namespace

Result<std::string_view> PayloadBytes::read(const PayloadPart& part) {
  if (part.path.empty())
    return std::string_view(part.bytes);
  auto file = files_.find(part.path);
  if (file == files_.end()) {
    auto buffer =
        llvm::MemoryBuffer::getFile(part.path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!buffer)
      return Error::badInput("{}: {}: the model's initial weights are there (use --weights-dir, or "
                             "model.init = \"fresh\")",
                             part.path, buffer.getError().message());
    file = files_.emplace(part.path, std::move(*buffer)).first;
  }
  llvm::StringRef bytes = file->second->getBuffer();
  uint64_t size = static_cast<uint64_t>(part.size);
  if (part.fileOffset > bytes.size() || size > bytes.size() - part.fileOffset)
    return Error::badInput("{} has {} bytes, weights are at {} + {}", part.path, bytes.size(),
                           part.fileOffset, size);
  llvm::StringRef stored = bytes.substr(part.fileOffset, size);
  if (llvm::xxh3_64bits(stored) != part.digest)
    return Error::badInput(
        "{} at {} + {}: the bytes are not those that the model was imported with", part.path,
        part.fileOffset, size);
  return std::string_view(stored.data(), stored.size());
}

Result<PayloadBytes> PayloadBytes::open(const std::vector<PayloadPart>& parts) {
  PayloadBytes payload;
  int64_t position = 0;
  for (const PayloadPart& part : parts) {
    while (position < part.offset) {
      auto gap = std::min<int64_t>(part.offset - position, zeros.size());
      payload.pieces_.emplace_back(zeros.data(), gap);
      position += gap;
    }
    payload.pieces_.push_back(TITAN_TRY(payload.read(part)));
    position += part.size;
  }
  return payload;
}

} // namespace titan
