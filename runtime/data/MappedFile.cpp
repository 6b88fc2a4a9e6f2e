#include "runtime/data/MappedFile.h"

#include "runtime/program/File.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>

namespace titan {

/// One mapping as the signal handler sees it. Guards form a list that only grows and whose links
/// never change, so that the handler needs no lock; a closed file's guard serves the next one.
struct MappedFile::Guard {
  std::atomic<char*> begin = nullptr; ///< null: free
  std::atomic<size_t> size = 0;
  std::atomic<bool> lost = false; ///< pages could not be read: all of them are zeros now
  Guard* next = nullptr;

  static Guard* add(char* begin, size_t size);
  static void install();
  static void handle(int signal, siginfo_t* info, void* context);

  static std::atomic<Guard*> first;
  static struct sigaction before;
};

std::atomic<MappedFile::Guard*> MappedFile::Guard::first = nullptr;
struct sigaction MappedFile::Guard::before = {};
static_assert(std::atomic<char*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

MappedFile::Guard* MappedFile::Guard::add(char* begin, size_t size) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Guard* guard = first;
  while (guard && guard->begin)
    guard = guard->next;
  if (!guard) {
    install();
    guard = new Guard; // stays: the handler may look at it at any time
    guard->next = first;
    first = guard;
  }
  guard->lost = false;
  guard->size = size;
  guard->begin = begin;
  return guard;
}

void MappedFile::Guard::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
  });
}

/// Runs on the thread that read a page which is not there. Puts zeros in the place of the whole
/// file, so that the read goes on: its result is not used, since `check` fails from now on.
void MappedFile::Guard::handle(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const auto* address = static_cast<const char*>(info->si_addr);
  for (Guard* guard = first; guard && info->si_code > 0; guard = guard->next) {
    char* begin = guard->begin;
    if (!begin || address < begin || address >= begin + guard->size)
      continue;
    guard->lost = true;
    if (::mmap(begin, guard->size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        MAP_FAILED) {
      errno = error;
      return;
    }
  }
  // Somebody else's: what would have happened without this handler. A fault comes again when the
  // instruction does; a signal that was sent must be sent again.
  sigaction(SIGBUS, &before, nullptr);
  if (info->si_code <= 0)
    raise(signal);
  errno = error;
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO by mistake must not wait for a writer.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor)
    return Error::badInput("cannot open '{}': {}", path, std::strerror(errno));
  struct stat info;
  if (::fstat(descriptor.get(), &info) != 0)
    return Error::badInput("cannot read '{}': {}", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode))
    return Error::badInput("'{}' is not a regular file", path);
  std::shared_ptr<MappedFile> file(new MappedFile(path));
  file->device_ = info.st_dev;
  file->inode_ = info.st_ino;
  if (info.st_size == 0)
    return std::shared_ptr<const MappedFile>(std::move(file));
  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (address == MAP_FAILED)
    return Error::badInput("cannot map '{}', {} bytes: {}", path, size, std::strerror(errno));
  file->bytes_ = {static_cast<const char*>(address), size};
  file->guard_ = Guard::add(static_cast<char*>(address), size);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (!guard_)
    return;
  guard_->begin = nullptr;
  ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

Status MappedFile::check() const {
  struct stat info;
  // Another file under the same name is no harm: the mapping keeps the one that was opened. Within
  // the last page a shorter file is zeros without a signal.
  if (::stat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_ &&
      info.st_size < static_cast<off_t>(bytes_.size()))
    return Error::badInput("'{}' had {} bytes when it was opened and has {} now: write data that a "
                           "job reads to a new file and rename it into place",
                           path_, bytes_.size(), info.st_size);
  if (guard_ && guard_->lost)
    return Error::badInput("'{}' could not be read to its end of {} bytes: it was cut, or its "
                           "storage failed, while the job read it",
                           path_, bytes_.size());
  return {};
}

} // namespace titan
