// A kernel.fused described in a few lines, and the bytes of its operands.
#pragma once

#include "compiler/Codegen/kernel/testing/KernelReference.h"

#include <string>
#include <vector>

namespace titan::codegen::testing {

struct OperandSpec {
  std::string element; ///< "f32", "i64", "i1", ...
  std::string map;     ///< "(r, c) -> (r, c)"
  std::vector<int64_t> shape;
  int64_t offset = 0; ///< bytes of its place in the arena
};

struct KernelSpec {
  std::vector<int64_t> space;
  std::vector<OperandSpec> ins, outs;
  unsigned scalars = 0;
  std::string kernelClass;
  std::string body; ///< the block with its arguments
};

/// A module with one function of the kernel on buffers.
std::string moduleText(const KernelSpec& spec);

/// Values that tests compute with: floats in [-2, 2), integers from 1 to 9, any truth value.
Elements randomElements(const OperandSpec& operand, unsigned seed);

/// A kernel with what its buffers and scalars hold, alike on every target.
class KernelData {
public:
  explicit KernelData(const KernelSpec& spec);

  /// Replaces the random contents of an in.
  void setIn(size_t in, const Elements& values);

protected:
  KernelSpec spec_;
  std::vector<Elements> ins_, outs_;
  std::vector<int64_t> scalars_;
};

/// Elements as the bytes of a buffer, and back.
std::string encode(const std::string& element, const Elements& values);
Elements decode(const std::string& element, const std::string& bytes);

/// Whether `found` is `want` within tolerance * (1 + |want|); a NaN is a NaN.
bool isClose(double found, double want, double tolerance);

} // namespace titan::codegen::testing
