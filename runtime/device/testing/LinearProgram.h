// A whole training program made by hand: linear regression y = x W^T + b by SGD with momentum, with
// everything that a compiled program has (microbatches in a repeat, products with generated
// stand-ins, counters, skipped steps, eval, predict), and kernels in C++. The executor and the job
// are tested on it without a compiler.
#pragma once

#include "runtime/program/Program.h"

#include <span>
#include <string>

namespace titan::testing {

struct LinearShape {
  static constexpr int64_t micro = 4, microbatches = 2, features = 8, outputs = 3;
  static constexpr int64_t batch = micro * microbatches;
};

/// Inputs "x" [2, 4, 8] and "targets" [2, 4, 3], output "prediction"; loss mse. `recipe` is TOML
/// that adds to model-independent keys ([train] steps = 20 ...).
Program linearProgram(const std::string& recipe = "");
std::span<const KernelFunction> linearKernels();
/// Holds the initial weight; the bias starts at 0.
std::string linearPayload();

} // namespace titan::testing
