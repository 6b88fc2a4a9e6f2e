// Owners of what the driver hands out.
#pragma once

#include "runtime/device/cuda/Driver.h"

#include <utility>

namespace titan::cuda {

/// A handle that `end` takes back. The driver outlives it, and the handle's context is current
/// where it ends.
template <typename Handle, auto end> class Owned {
public:
  Owned() = default;
  Owned(const Driver& driver, Handle handle) : driver_(&driver), handle_(handle) {}
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (driver_)
      (void)(driver_->*end)(handle_);
  }

  Handle get() const { return handle_; }

private:
  const Driver* driver_ = nullptr;
  Handle handle_{};
};

/// A card's primary context, by the card.
using OwnedContext = Owned<CUdevice, &Driver::cuDevicePrimaryCtxRelease_v2>;
using OwnedModule = Owned<CUmodule, &Driver::cuModuleUnload>;
using OwnedStream = Owned<CUstream, &Driver::cuStreamDestroy_v2>;
using OwnedEvent = Owned<CUevent, &Driver::cuEventDestroy_v2>;
using OwnedGraph = Owned<CUgraph, &Driver::cuGraphDestroy>;
using OwnedGraphExec = Owned<CUgraphExec, &Driver::cuGraphExecDestroy>;
using OwnedMemory = Owned<CUdeviceptr, &Driver::cuMemFree_v2>;
using OwnedHostMemory = Owned<void*, &Driver::cuMemFreeHost>;

} // namespace titan::cuda
