#include "runtime/device/cuda/Owned.h"

namespace titan::cuda {

Result<OwnedStream> makeStream(const Driver& driver, const std::string& what) {
  CUstream stream = nullptr;
  TITAN_TRY(driver.need(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), what));
  return OwnedStream(driver, stream);
}

Result<OwnedEvent> makeEvent(const Driver& driver, unsigned flags, const std::string& what) {
  CUevent event = nullptr;
  TITAN_TRY(driver.need(driver.cuEventCreate(&event, flags), what));
  return OwnedEvent(driver, event);
}

} // namespace titan::cuda
