#include "runtime/collective/Mapping.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>

namespace titan {

Result<Mapping> Mapping::anonymous(int64_t bytes) {
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return Error::environment("cannot map {} bytes of shared memory: {}", bytes,
                              std::strerror(errno));
  return Mapping(static_cast<char*>(data), bytes);
}

Result<Mapping> Mapping::ofFile(int file, int64_t offset, int64_t bytes, bool writable) {
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, static_cast<size_t>(bytes), access, MAP_SHARED, file, offset);
  if (data == MAP_FAILED)
    return Error::environment("cannot map {} bytes of the ranks' shared memory: {}", bytes,
                              std::strerror(errno));
  return Mapping(static_cast<char*>(data), bytes);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_)
    munmap(data_, static_cast<size_t>(size_));
}

} // namespace titan
