#include "runtime/device/cpu/Arena.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace titan {
namespace {

constexpr int64_t hugePage = int64_t{2} << 20;

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

} // namespace

Result<Arena> Arena::create(int64_t bytes, ThreadPool& pool) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  Arena arena;
  arena.size_ = bytes;
  arena.capacity_ = roundUp(bytes > 0 ? bytes : 1, page);
  // Room to start the data on a huge page with an inaccessible page before it and one behind it.
  arena.mappingBytes_ = static_cast<size_t>(arena.capacity_ + hugePage + 2 * page);
  void* mapping = mmap(nullptr, arena.mappingBytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED)
    return Error::environment("cannot reserve {} bytes of memory for the arena: {}", bytes,
                              std::strerror(errno));
  arena.mapping_ = static_cast<char*>(mapping);
  auto address = reinterpret_cast<int64_t>(mapping);
  arena.data_ = arena.mapping_ + (roundUp(address + page, hugePage) - address);
  if (mprotect(arena.data_, static_cast<size_t>(arena.capacity_), PROT_READ | PROT_WRITE) != 0)
    return Error::environment(
        "cannot allocate {} bytes of memory for the arena: {}: free memory or lower batch.micro",
        bytes, std::strerror(errno));
  // Advice only: without huge pages everything works, with more TLB misses.
  madvise(arena.data_, static_cast<size_t>(arena.capacity_), MADV_HUGEPAGE);
  char* data = arena.data_;
  pool.parallelFor(arena.capacity_ / page, 256, [data, page](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      *static_cast<volatile char*>(data + i * page) = 0;
  });
  return arena;
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other)
    return *this;
  release();
  mapping_ = std::exchange(other.mapping_, nullptr);
  mappingBytes_ = std::exchange(other.mappingBytes_, 0);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  capacity_ = std::exchange(other.capacity_, 0);
  return *this;
}

Arena::~Arena() { release(); }

void Arena::release() {
  if (mapping_)
    munmap(mapping_, mappingBytes_);
}

} // namespace titan
