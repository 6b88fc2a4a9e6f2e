#include "runtime/device/cuda/CardReader.h"

namespace titan::cuda {

Result<std::unique_ptr<CardReader>> CardReader::create(const Driver& driver, CUcontext context,
                                                       const Card& card, const CardMemory& memory,
                                                       Hold hold) {
  std::unique_ptr<CardReader> reader(
      new CardReader(driver, context, card, memory, std::move(hold)));
  reader->stream_ = TITAN_TRY(makeStream(driver, reader->what()));
  // Who waits for it sleeps: the thread of a save is to take no time from others.
  reader->done_ = TITAN_TRY(
      makeEvent(driver, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING, reader->what()));
  return reader;
}

Status CardReader::download(int64_t offset, std::span<char> into) {
  TITAN_TRY(need(driver_->cuCtxSetCurrent(context_)));
  const auto copy = [&](CUdeviceptr from, int64_t first, int64_t count) {
    return need(driver_->cuMemcpyDtoHAsync_v2(into.data() + first, from, static_cast<size_t>(count),
                                              stream_.get()));
  };
  TITAN_TRY(memory_->forEachRange(offset, static_cast<int64_t>(into.size()), copy));
  return need(driver_->cuEventRecord(done_.get(), stream_.get()));
}

Status CardReader::wait() {
  TITAN_TRY(need(driver_->cuCtxSetCurrent(context_)));
  return need(driver_->cuEventSynchronize(done_.get()));
}

} // namespace titan::cuda
