// How the tests' libraries put work into the streams of the tests' driver. libcuda.so.1 exports one
// function more for them; no job calls it.
#pragma once

#include "runtime/device/cuda/DriverApi.h"
#include "runtime/device/cuda/testing/ptx/Ptx.h"

#include <functional>
#include <string>

namespace titan::cuda::testing {

struct FakeWork {
  std::string name; ///< for the record and errors
  /// On the card's memory, when the stream comes to it. An error is the card's, as that of a
  /// kernel that reads or writes where it must not.
  std::function<Status(ptx::Memory&)> run;
  bool loads = false; ///< code that no work has loaded before: not in a capture
};

} // namespace titan::cuda::testing

extern "C" titan::cuda::CUresult titanFakeEnqueue(titan::cuda::CUstream stream,
                                                  const titan::cuda::testing::FakeWork* work);
