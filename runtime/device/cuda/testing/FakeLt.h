// The tests' cuBLASLt in GoogleTests: its variables, for as long as an object lives.
#pragma once

#include <cstdlib>
#include <string>

namespace titan::testing {

/// A variable of the environment.
class Variable {
public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  ~Variable() { unsetenv(name_.c_str()); }

private:
  std::string name_;
};

/// TITAN_FAKE_CUBLASLT_<name>, which the fake reads when it is opened.
struct FakeLtVariable : Variable {
  FakeLtVariable(const std::string& name, const std::string& value)
      : Variable("TITAN_FAKE_CUBLASLT_" + name, value) {}
};

/// There is none while this lives.
struct WithoutLt : Variable {
  WithoutLt() : Variable("TITAN_CUDA_LIBRARIES", TITAN_NO_CUBLASLT) {}
};

} // namespace titan::testing
