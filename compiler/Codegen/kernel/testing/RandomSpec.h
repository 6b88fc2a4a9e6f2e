// Kernels drawn at random: every class, element type and kind of map that lowering makes.
#pragma once

#include "compiler/Codegen/kernel/testing/KernelSpec.h"

namespace titan::codegen::testing {

struct RandomSpec {
  KernelSpec spec; ///< its first out may lie on its first in
  double tolerance =
      0; ///< |error| <= tolerance * (1 + |value|): what narrow results are rounded to
};

/// A kernel over [outer..., rows..., inner...] with sums, means and extremes over inner, over rows,
/// or both; at most 70,000 points. Operands of f32, f64, bf16, i64, i32 and i1 hold some of the
/// dimensions, in any order, apart from each other or two as one; their bytes begin anywhere.
/// Dropout's random bits, comparisons of indices, and functions of f32 are among what it computes.
RandomSpec drawKernel(unsigned seed);

} // namespace titan::codegen::testing
