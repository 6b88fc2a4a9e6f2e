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

Result<uint64_t> StoredWeights::read(int64_t offset, int64_t bytes, char* destination) const {
  const auto tooShort = [] { return Error::badInput("too short"); };
  if (file_ < 0 && (offset < 0 || offset > static_cast<int64_t>(payload_.size()) ||
                    bytes > static_cast<int64_t>(payload_.size()) - offset))
    return tooShort();
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  for (int64_t done = 0; done < bytes;) {
    const int64_t wanted = std::min(pieceBytes, bytes - done);
    int64_t got = wanted;
    if (file_ < 0) {
      std::memcpy(destination + done, payload_.data() + offset + done, static_cast<size_t>(wanted));
    } else {
      got = pread(file_, destination + done, static_cast<size_t>(wanted), offset + done);
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0)
        return Error::badInput("{}", std::strerror(errno));
      if (got == 0)
        return tooShort();
    }
    XXH3_64bits_update(&digest, destination + done, static_cast<size_t>(got));
    done += got;
    // Neighbours share pages and large folios, so a little more than the piece is dropped each
    // time.
    if (file_ < 0)
      releasePages(payload_.substr(static_cast<size_t>(offset), static_cast<size_t>(done)));
  }
  return XXH3_64bits_digest(&digest);
}

} // namespace titan
