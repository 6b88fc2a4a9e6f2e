// Owners of what the driver hands out.
#pragma once

#include "runtime/device/cuda/Driver.h"

#include <string>
#include <utility>

namespace titan::cuda {

/// A handle that `end` takes back. The library outlives it, and the handle's context is current
/// where it ends.
template <typename Library, typename Handle, auto end> class OwnedOf {
public:
  OwnedOf() = default;
  OwnedOf(const Library& library, Handle handle) : library_(&library), handle_(handle) {}
  OwnedOf(OwnedOf&& other) noexcept { *this = std::move(other); }
  OwnedOf& operator=(OwnedOf&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~OwnedOf() {
    if (library_)
      (void)(library_->*end)(handle_);
  }

  Handle get() const { return handle_; }

private:
  const Library* library_ = nullptr;
  Handle handle_{};
};

template <typename Handle, auto end> using Owned = OwnedOf<Driver, Handle, end>;

/// A card's primary context, by the card.
using OwnedContext = Owned<CUdevice, &Driver::cuDevicePrimaryCtxRelease_v2>;
using OwnedModule = Owned<CUmodule, &Driver::cuModuleUnload>;
using OwnedStream = Owned<CUstream, &Driver::cuStreamDestroy_v2>;
using OwnedEvent = Owned<CUevent, &Driver::cuEventDestroy_v2>;
using OwnedGraph = Owned<CUgraph, &Driver::cuGraphDestroy>;
using OwnedGraphExec = Owned<CUgraphExec, &Driver::cuGraphExecDestroy>;
using OwnedMemory = Owned<CUdeviceptr, &Driver::cuMemFree_v2>;
using OwnedHostMemory = Owned<void*, &Driver::cuMemFreeHost>;

/// In the current context; `what` goes on when the call fails.
Result<OwnedStream> makeStream(const Driver& driver, const std::string& what);
Result<OwnedEvent> makeEvent(const Driver& driver, unsigned flags, const std::string& what);

} // namespace titan::cuda
