// Are two results on a card the same bits? A kernel of our own digests them where they are.
#pragma once

#include "runtime/device/cuda/Owned.h"

#include <string>

namespace titan::cuda {

class BitsDigest {
public:
  /// The card's context is current, here and later.
  static Result<BitsDigest> create(const Driver& driver);
  /// Of `bytes` bytes (an even number) behind what the stream holds, for which it waits. Bytes that
  /// differ in one place have different digests; others but for chance. The errors of the driver.
  Result<std::string> of(CUdeviceptr address, int64_t bytes, CUstream stream) const;

private:
  const Driver* driver_ = nullptr;
  OwnedModule module_;
  CUfunction function_ = nullptr;
  OwnedMemory parts_; ///< of each thread
};

} // namespace titan::cuda
