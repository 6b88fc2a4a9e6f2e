// The attention routine compiled for a CPU.
#pragma once

#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Codegen/kernel/testing/AttentionProblem.h"

#include <optional>
#include <string>
#include <vector>

namespace titan::codegen::testing {

class AttentionCase : public AttentionProblem {
public:
  /// With another matrix unit than the target's where one is given.
  explicit AttentionCase(AttentionSpec spec, std::string_view arch = "native",
                         std::optional<MatrixUnitKind> unit = {});

  /// What the routine writes, called for at most `step` units at a time. Backward runs on what
  /// forward gives.
  AttentionTensors forward(int64_t step = 0) const;
  AttentionTensors backward(int64_t step = 0) const;

  /// Seconds that compiling and loading both routines took.
  double compileSeconds = 0;
  /// Seconds of the fastest of `repeats` runs on one thread.
  double seconds(bool isBackward, int repeats) const;

private:
  std::vector<std::string> run(bool isBackward, int64_t step, const AttentionTensors& tensors,
                               int repeats, double* seconds) const;

  std::unique_ptr<KernelRunner> runner_;
};

} // namespace titan::codegen::testing
