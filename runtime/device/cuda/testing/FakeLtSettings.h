// What the tests' cuBLASLt is told by the environment; read by cublasLtGetVersion and
// cublasLtCreate. Each of the lists names algorithms: "0,2" or "all".
#pragma once

#include "runtime/program/Error.h"

#include <cstdint>
#include <string>

namespace titan::cuda::testing {

/// A set of algorithms.
class FakeAlgorithms {
public:
  bool has(int number) const { return bits_ >> number & 1; }
  bool parse(std::string_view text);

private:
  uint32_t bits_ = 0;
};

struct FakeLtSettings {
  static constexpr int algorithms = 4;

  size_t version = 130100;    ///< TITAN_FAKE_CUBLASLT_VERSION=13.1.0
  int start = 0;              ///< TITAN_FAKE_CUBLASLT_START=1: what cublasLtCreate returns
  FakeAlgorithms refusing;    ///< TITAN_FAKE_CUBLASLT_REFUSE: runs return NOT_SUPPORTED
  FakeAlgorithms misrounding; ///< TITAN_FAKE_CUBLASLT_MISROUND: sums are rounded twice
  FakeAlgorithms coarse;      ///< TITAN_FAKE_CUBLASLT_COARSE: operands of f32 are read as tf32
  FakeAlgorithms varying;     ///< TITAN_FAKE_CUBLASLT_VARY: each second run has another bit
  FakeAlgorithms greedy;      ///< TITAN_FAKE_CUBLASLT_GREEDY: need more workspace than allowed
  FakeAlgorithms careless;    ///< TITAN_FAKE_CUBLASLT_CARELESS: read what the workspace held
  /// TITAN_FAKE_CUBLASLT_NONE=1: no algorithm is known for any product.
  bool knowsNothing = false;

  /// BadInput, with the variable.
  static Result<FakeLtSettings> read();
};

} // namespace titan::cuda::testing
