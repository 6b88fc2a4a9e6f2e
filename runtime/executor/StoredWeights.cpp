#include "runtime/executor/StoredWeights.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace titan {
namespace {

// Read at a time: what was just copied is in the cache when its digest is taken.
constexpr int64_t pieceBytes = int64_t{1} << 20;

/// Asks the system to drop the pages that lie within the bytes. Advice: it never loses data, and
/// does nothing where it is not known or others use the pages.
void releasePages(std::string_view bytes) {
#ifdef MADV_PAGEOUT
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end)
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_PAGEOUT);
#endif
}

} // namespace

Result<StoredWeights> StoredWeights::ofFile(const std::string& path) {
  StoredWeights weights{std::string_view()};
  weights.file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (weights.file_ < 0)
    return Error::badInput("{}", std::strerror(errno));
  return weights;
}

StoredWeights::StoredWeights(StoredWeights&& other) noexcept
    : payload_(other.payload_), file_(std::exchange(other.file_, -1)) {}

StoredWeights::~StoredWeights() {
  if (file_ >= 0)
    close(file_);
}

Result<int64_t> StoredWeights::readSome(int64_t offset, std::span<char> into) const {
  if (file_ < 0) {
    std::memcpy(into.data(), payload_.data() + offset, into.size());
    return static_cast<int64_t>(into.size());
  }
  for (;;) {
    const int64_t got = pread(file_, into.data(), into.size(), offset);
    if (got >= 0)
      return got;
    if (errno != EINTR)
      return Error::badInput("{}", std::strerror(errno));
  }
}

Result<uint64_t> StoredWeights::read(int64_t offset, const ByteSink& destination) const {
  const auto tooShort = [] { return Error::badInput("too short"); };
  if (file_ < 0 && (offset < 0 || offset > static_cast<int64_t>(payload_.size()) ||
                    destination.bytes() > static_cast<int64_t>(payload_.size()) - offset))
    return tooShort();
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  int64_t at = offset;
  TITAN_TRY(destination.fillPieces([&](int64_t, std::span<char> rest) -> Status {
    while (!rest.empty()) {
      const size_t wanted = std::min(static_cast<size_t>(pieceBytes), rest.size());
      const int64_t got = TITAN_TRY(readSome(at, rest.first(wanted)));
      if (got == 0)
        return tooShort();
      XXH3_64bits_update(&digest, rest.data(), static_cast<size_t>(got));
      at += got;
      rest = rest.subspan(static_cast<size_t>(got));
      // Neighbours share pages and large folios, so a little more than the piece is dropped each
      // time.
      if (file_ < 0)
        releasePages(
            payload_.substr(static_cast<size_t>(offset), static_cast<size_t>(at - offset)));
    }
    return {};
  }));
  return XXH3_64bits_digest(&digest);
}

} // namespace titan
