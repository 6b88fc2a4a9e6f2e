#include "runtime/device/cuda/RepeatedFill.h"

#include <algorithm>

namespace titan::cuda {

Status fillRepeatedly(const Driver& driver, CUstream stream, CUdeviceptr address, int64_t bytes,
                      std::string_view block, const char* what) {
  int64_t done = std::min(bytes, static_cast<int64_t>(block.size()));
  TITAN_TRY(driver.need(
      driver.cuMemcpyHtoDAsync_v2(address, block.data(), static_cast<size_t>(done), stream), what));
  // A driver need not have made a copy of the block, which may end with the call.
  TITAN_TRY(driver.need(driver.cuStreamSynchronize(stream), what));
  while (done < bytes) {
    const int64_t next = std::min(done, bytes - done);
    TITAN_TRY(driver.need(driver.cuMemcpyDtoDAsync_v2(address + static_cast<uint64_t>(done),
                                                      address, static_cast<size_t>(next), stream),
                          what));
    done += next;
  }
  return {};
}

} // namespace titan::cuda
