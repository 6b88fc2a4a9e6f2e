// What the fake driver is told by the environment. It reads the variables in cuInit() and
// cuDriverGetVersion(), while no context is held.
#pragma once

#include "runtime/device/cuda/Card.h"
#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include <string>
#include <vector>

namespace titan::cuda::testing {

struct FakeSettings {
  /// The n-th call of an entry point, from 1 on.
  struct Failure {
    std::string entry;
    int64_t call = 1;
    bool kill = false; ///< the process ends as by kill -9, before the call does anything
    int result = 0;    ///< else the call does nothing and returns this
  };

  int devices = 1;                          ///< TITAN_FAKE_CUDA_DEVICES
  Capability capability = {12, 0};          ///< TITAN_FAKE_CUDA_CAPABILITY=9.0
  int driverVersion = 13000;                ///< TITAN_FAKE_CUDA_VERSION=12.4
  int64_t bytes = int64_t{8} << 30;         ///< TITAN_FAKE_CUDA_MEMORY: of each device
  int64_t sharedBytes = 227 << 10;          ///< TITAN_FAKE_CUDA_SHARED: a block's at most
  ptx::Order order = ptx::Order::Ascending; ///< TITAN_FAKE_CUDA_ORDER=ascending|descending|random
  /// TITAN_FAKE_CUDA_SEED. 0: work is done when something waits for it. Else now and then earlier,
  /// streams in another order; blocks and warps, where their order is random, in that of the seed.
  uint64_t seed = 0;
  std::vector<Failure> failures; ///< TITAN_FAKE_CUDA_FAIL=cuLaunchKernel:3:700,cuMemAlloc_v2:1:kill
  std::string record; ///< TITAN_FAKE_CUDA_RECORD: a file that gets a line for each call and launch
  /// TITAN_FAKE_CUDA_PTX: a file that stands for the code in cubins. Without one a cubin is none.
  std::string ptx;

  /// BadInput, with the variable.
  static Result<FakeSettings> read();
};

} // namespace titan::cuda::testing
