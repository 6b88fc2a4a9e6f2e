#include "runtime/collective/InProcess.h"

#include "runtime/collective/LocalCommunicator.h"

#include <cstring>

namespace titan {
namespace {

class InProcess final : public LocalCommunicator {
public:
  InProcess(std::shared_ptr<Mapping> memory, ControlBlock block, int64_t rank, ThreadPool* pool,
            const CommDelay& delay)
      : LocalCommunicator(block, rank, pool, delay), memory_(std::move(memory)) {}

  /// The region is read where it is.
  Status shareStaging(std::span<char> region) override {
    const char* mine = region.data();
    std::vector<std::string> all;
    TITAN_TRY(exchange("the sharing of staging",
                       {reinterpret_cast<const char*>(&mine), sizeof mine}, all));
    std::vector<const char*> peers(all.size());
    for (size_t rank = 0; rank < all.size(); ++rank)
      std::memcpy(&peers[rank], all[rank].data(), sizeof mine);
    setStaging(region, std::move(peers));
    return {};
  }

private:
  std::shared_ptr<Mapping> memory_; ///< of the block
};

} // namespace

Result<std::vector<std::unique_ptr<Communicator>>>
connectInProcess(int64_t ranks, std::span<ThreadPool* const> pools, const CommDelay& delay) {
  auto memory =
      std::make_shared<Mapping>(TITAN_TRY(Mapping::anonymous(ControlBlock::bytesFor(ranks))));
  const ControlBlock block =
      ControlBlock::initialize(memory->data(), ranks, /*crowded=*/ranks > allowedCpus());
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ThreadPool* pool = pools.empty() ? nullptr : pools[static_cast<size_t>(rank)];
    communicators.push_back(std::make_unique<InProcess>(memory, block, rank, pool, delay));
  }
  return communicators;
}

} // namespace titan
