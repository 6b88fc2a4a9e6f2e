// The fake driver in tests: its variables, for as long as an object lives.
#pragma once

#include "runtime/device/cuda/Driver.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace titan::testing {

/// TITAN_FAKE_CUDA_<name>, which the fake reads when a driver is loaded and no device is open.
class FakeVariable {
public:
  FakeVariable(const std::string& name, const std::string& value)
      : name_("TITAN_FAKE_CUDA_" + name) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  FakeVariable(const FakeVariable&) = delete;
  ~FakeVariable() { unsetenv(name_.c_str()); }

private:
  std::string name_;
};

/// A driver; the test ends where there is none.
inline cuda::Driver loadDriver() {
  Result<cuda::Driver> driver = cuda::Driver::load();
  if (!driver.ok()) {
    std::fprintf(stderr, "%s\nrun this test by scripts/fake-cuda\n",
                 driver.error().message().c_str());
    std::abort();
  }
  return driver.take();
}

} // namespace titan::testing
