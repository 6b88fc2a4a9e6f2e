// A kernel.fused with its data, and the checks that every kernel must pass on a CPU.
#pragma once

#include "compiler/Codegen/cpu/testing/KernelRunner.h"
#include "compiler/Codegen/kernel/testing/KernelSpec.h"

#include <string>
#include <vector>

namespace titan::codegen::testing {

/// The function of a module's text for this machine; null, and the test fails, where there is none.
std::unique_ptr<KernelRunner> compile(const std::string& text);

class KernelCase : public KernelData {
public:
  /// For this machine, or for another CPU whose code it can run.
  explicit KernelCase(const KernelSpec& spec, std::string_view arch = "native");

  /// Runs the kernel, compares with its definition, |error| <= tolerance * (1 + |value|), and then
  /// with itself in calls of one and of three units, bit for bit. Nothing beyond a buffer may
  /// change.
  void check(double tolerance);
  /// Runs the kernel with `out` in the place of `in`: every out must be what it is otherwise, bit
  /// for bit.
  void checkInPlace(size_t in, size_t out);
  /// Bytes of each out after a run; `places` says which out (second) lies on which in (first).
  std::vector<std::string> run(int64_t step = 0,
                               std::vector<std::pair<size_t, size_t>> places = {});

private:
  std::unique_ptr<KernelRunner> runner_;
};

} // namespace titan::codegen::testing
