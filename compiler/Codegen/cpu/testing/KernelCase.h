// A kernel.fused described in a few lines, its data, and the checks that every kernel must pass.
#pragma once

#include "compiler/Codegen/cpu/testing/KernelReference.h"
#include "compiler/Codegen/cpu/testing/KernelRunner.h"

#include <string>
#include <vector>

namespace titan::codegen::testing {

struct OperandSpec {
  std::string element; ///< "f32", "i64", "i1", ...
  std::string map;     ///< "(r, c) -> (r, c)"
  std::vector<int64_t> shape;
};

struct KernelSpec {
  std::vector<int64_t> space;
  std::vector<OperandSpec> ins, outs;
  unsigned scalars = 0;
  std::string kernelClass;
  std::string body; ///< the block with its arguments
};

class KernelCase {
public:
  /// For this machine, or for another CPU whose code it can run.
  explicit KernelCase(const KernelSpec& spec, std::string_view arch = "native");

  /// Replaces the random contents of an in.
  void setIn(size_t in, const Elements& values);

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
  KernelSpec spec_;
  std::unique_ptr<KernelRunner> runner_;
  std::vector<Elements> ins_, outs_;
  std::vector<int64_t> scalars_;
};

/// Elements as the bytes of a buffer, and back.
std::string encode(const std::string& element, const Elements& values);
Elements decode(const std::string& element, const std::string& bytes);

} // namespace titan::codegen::testing
