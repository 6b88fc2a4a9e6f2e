#include "runtime/data/MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace titan {

namespace {
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0)
      ::close(value);
  }
};
} // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO by mistake must not wait for a writer.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0)
    return Error::badInput("cannot open '{}': {}", path, std::strerror(errno));
  struct stat info;
  if (::fstat(file.value, &info) != 0)
    return Error::badInput("cannot read '{}': {}", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return Error::badInput("'{}' is not a regular file", path);
  if (info.st_size == 0)
    return std::shared_ptr<const MappedFile>(new MappedFile({}));
  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (address == MAP_FAILED)
    return Error::badInput("cannot map '{}', {} bytes: {}", path, size, std::strerror(errno));
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const char*>(address), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty())
    ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

} // namespace titan
