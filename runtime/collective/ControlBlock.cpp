#include "runtime/collective/ControlBlock.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include <sys/stat.h>

namespace titan {
namespace {

constexpr char magic[8] = {'T', 'I', 'T', 'A', 'N', 'R', 'N', 'K'};
constexpr int64_t pageBytes = 4096;
constexpr int64_t headerBytes = 2 * pageBytes;
constexpr size_t messageBytes = 1024, pathBytes = 4096;

enum FailureState : uint32_t { None, BeingWritten, Written };

int64_t wholePages(int64_t bytes) { return (bytes + pageBytes - 1) / pageBytes * pageBytes; }

int64_t windowsAt(int64_t ranks) {
  return headerBytes + wholePages(ranks * static_cast<int64_t>(sizeof(RankSlot)));
}

} // namespace

struct ControlBlock::Header {
  char magic[8];
  uint32_t version;
  uint32_t ranks;
  int64_t bytes;
  uint32_t crowded;
  alignas(64) std::atomic<uint32_t> failureState;
  int32_t code;
  int32_t told;
  int64_t rank;
  char message[messageBytes];
  std::atomic<uint32_t> hasRunDirectory;
  char runDirectory[pathBytes];
};

int64_t ControlBlock::bytesFor(int64_t ranks) { return windowsAt(ranks) + ranks * 2 * windowBytes; }

ControlBlock ControlBlock::initialize(char* memory, int64_t ranks, bool crowded) {
  static_assert(sizeof(Header) <= headerBytes);
  auto* header = new (memory) Header{};
  header->version = version;
  header->ranks = static_cast<uint32_t>(ranks);
  header->bytes = bytesFor(ranks);
  header->crowded = crowded;
  for (int64_t rank = 0; rank < ranks; ++rank)
    new (memory + headerBytes + rank * static_cast<int64_t>(sizeof(RankSlot))) RankSlot;
  std::memcpy(header->magic, magic, sizeof magic);
  return ControlBlock(memory);
}

Result<Mapping> ControlBlock::map(int file, int64_t ranks) {
  struct stat status;
  if (fstat(file, &status) != 0)
    return Error::environment("TITAN_CONTROL_FD = {}: {}", file, std::strerror(errno));
  const int64_t bytes = status.st_size;
  if (bytes < headerBytes)
    return Error::environment("TITAN_CONTROL_FD = {} is no control block of titan-run", file);
  Mapping mapping =
      TITAN_TRY(Mapping::ofFile(file, 0, std::min(bytes, bytesFor(ranks)), /*writable=*/true));
  const Header& header = ControlBlock(mapping).header();
  if (std::memcmp(header.magic, magic, sizeof magic) != 0)
    return Error::environment("TITAN_CONTROL_FD = {} is no control block of titan-run", file);
  if (header.version != version)
    return Error::environment("the control block of titan-run has version {}, this job reads {}: "
                              "use the titan-run of the titan-compile that made the job",
                              header.version, version);
  if (header.ranks != static_cast<uint32_t>(ranks) || bytes < bytesFor(ranks))
    return Error::environment("the control block of titan-run is for {} ranks, TITAN_RANKS = {}",
                              header.ranks, ranks);
  return mapping;
}

ControlBlock::Header& ControlBlock::header() const { return *reinterpret_cast<Header*>(memory_); }

int64_t ControlBlock::ranks() const { return header().ranks; }

bool ControlBlock::isCrowded() const { return header().crowded != 0; }

RankSlot& ControlBlock::slot(int64_t rank) const {
  return reinterpret_cast<RankSlot*>(memory_ + headerBytes)[rank];
}

char* ControlBlock::window(int64_t rank, int half) const {
  return memory_ + windowsAt(ranks()) + (2 * rank + half) * windowBytes;
}

bool ControlBlock::hasFailed() const {
  return header().failureState.load(std::memory_order_acquire) == Written;
}

std::optional<Failure> ControlBlock::failure() const {
  if (!hasFailed())
    return std::nullopt;
  const Header& from = header();
  return Failure{from.code, from.rank, from.told != 0, from.message};
}

bool ControlBlock::fail(const Failure& failure) const {
  uint32_t none = None;
  if (!header().failureState.compare_exchange_strong(none, BeingWritten))
    return false;
  write(failure);
  return true;
}

void ControlBlock::failAnyway(const Failure& failure) const {
  if (fail(failure))
    return;
  // A message takes nanoseconds to write; a rank may be stopped in between.
  for (int i = 0; i < 100 && !hasFailed(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!hasFailed())
    write(failure);
}

void ControlBlock::setRunDirectory(std::string_view path) const {
  if (path.size() >= pathBytes)
    return;
  std::memcpy(header().runDirectory, path.data(), path.size());
  header().hasRunDirectory.store(1, std::memory_order_release);
}

std::string ControlBlock::runDirectory() const {
  return header().hasRunDirectory.load(std::memory_order_acquire) ? header().runDirectory : "";
}

void ControlBlock::write(const Failure& failure) const {
  Header& to = header();
  to.code = failure.code;
  to.rank = failure.rank;
  to.told = failure.told;
  const size_t size = std::min(failure.message.size(), messageBytes - 1);
  std::memcpy(to.message, failure.message.data(), size);
  to.message[size] = '\0';
  to.failureState.store(Written, std::memory_order_seq_cst);
  for (int64_t rank = 0; rank < ranks(); ++rank) {
    slot(rank).started.wakeAll();
    slot(rank).phase.wakeAll();
  }
}

} // namespace titan
