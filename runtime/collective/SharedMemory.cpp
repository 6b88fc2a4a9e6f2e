#include "runtime/collective/SharedMemory.h"

#include "runtime/collective/Heartbeat.h"
#include "runtime/collective/LocalCommunicator.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace titan {
namespace {

class SharedMemory final : public LocalCommunicator {
public:
  SharedMemory(Mapping memory, ControlBlock block, int file, int64_t rank,
               const ConnectOptions& options, std::unique_ptr<Heartbeat> heartbeat)
      : LocalCommunicator(block, rank, options.pool, options.delay), memory_(std::move(memory)),
        file_(file), heartbeat_(std::move(heartbeat)) {}

  Status shareStaging(std::span<char> region) override;

private:
  Status reserve(std::span<char> region, int64_t offset, int64_t end) const;

  Mapping memory_; ///< of the block
  int file_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::vector<Mapping> regions_; ///< of the other ranks
};

/// The file's bytes from `offset` on take the place of the region's. All ranks come to the same end
/// of the file.
Status SharedMemory::reserve(std::span<char> region, int64_t offset, int64_t end) const {
  const auto bytes = static_cast<off_t>(region.size());
  // Memory that is not there is an error here, and would be a signal at the first write.
  int code = ftruncate(file_, end) == 0 ? 0 : errno;
  if (code == 0 && bytes > 0)
    code = fallocate(file_, 0, offset, bytes) == 0 ? 0 : errno;
  if (code == 0 && bytes > 0 &&
      mmap(region.data(), region.size(), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED | MAP_POPULATE, file_, offset) == MAP_FAILED)
    code = errno;
  if (code != 0)
    return Error::environment("cannot share {} bytes of staging memory between the ranks: {}",
                              bytes, std::strerror(code));
  return {};
}

Status SharedMemory::shareStaging(std::span<char> region) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const auto size = static_cast<int64_t>(region.size());
  if (reinterpret_cast<uintptr_t>(region.data()) % static_cast<uintptr_t>(page) != 0 ||
      size % page != 0)
    return Error::internal("the staging region is not of whole pages: {} bytes", size);
  std::vector<std::string> all;
  TITAN_TRY(
      exchange("the sharing of staging", {reinterpret_cast<const char*>(&size), sizeof size}, all));
  std::vector<int64_t> sizes(all.size()), offsets(all.size());
  int64_t end = static_cast<int64_t>(memory_.bytes().size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::memcpy(&sizes[rank], all[rank].data(), sizeof size);
    offsets[rank] = end;
    end += sizes[rank];
  }
  const auto me = static_cast<size_t>(rank());
  TITAN_TRY(reserve(region, offsets[me], end));
  TITAN_TRY(exchange("the mapping of staging", {}, all));
  std::vector<const char*> peers(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    peers[rank] = region.data();
    if (rank == me || sizes[rank] == 0)
      continue;
    regions_.push_back(
        TITAN_TRY(Mapping::ofFile(file_, offsets[rank], sizes[rank], /*writable=*/false)));
    peers[rank] = regions_.back().data();
  }
  setStaging(region, std::move(peers));
  return {};
}

} // namespace

Result<int> createControlFile(int64_t ranks, bool crowded) {
  const int64_t bytes = ControlBlock::bytesFor(ranks);
  const int file = memfd_create("titan-ranks", MFD_ALLOW_SEALING);
  // Nobody can take a page away under another's feet.
  if (file < 0 || ftruncate(file, bytes) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    const int code = errno;
    close(file);
    return Error::environment("cannot create the ranks' shared memory: {}", std::strerror(code));
  }
  Result<Mapping> memory = Mapping::ofFile(file, 0, bytes, /*writable=*/true);
  if (!memory.ok()) {
    close(file);
    return memory.takeError();
  }
  ControlBlock::initialize(memory->data(), ranks, crowded);
  return file;
}

Result<std::unique_ptr<Communicator>>
connectSharedMemory(int controlFile, int64_t rank, int64_t ranks, const ConnectOptions& options) {
  Mapping memory = TITAN_TRY(ControlBlock::map(controlFile, ranks));
  const ControlBlock block(memory);
  RankSlot& slot = block.slot(rank);
  uint32_t nobody = 0;
  if (!slot.attached.compare_exchange_strong(nobody, 1))
    return Error::environment("TITAN_RANK = {}: another process is this rank already", rank);
  slot.pid = getpid();
  std::unique_ptr<Heartbeat> heartbeat = TITAN_TRY(Heartbeat::start(block, rank, options.limits));
  return std::unique_ptr<Communicator>(std::make_unique<SharedMemory>(
      std::move(memory), block, controlFile, rank, options, std::move(heartbeat)));
}

} // namespace titan
