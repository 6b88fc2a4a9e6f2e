// Which microbatches of a step each rank runs: the one rule that compiler, loader and interpreter
// share.
#pragma once

#include "runtime/program/Affine.h"
#include "runtime/program/Recipe.h"

namespace titan {

/// Iteration i of a rank is microbatch `first` + i * `stride` of the step, 0 <= i <
/// Recipe::localMicrobatches().
struct MicrobatchOrder {
  int64_t first = 0;
  int64_t stride = 1;
  int64_t at(int64_t iteration) const { return first + iteration * stride; }
  bool operator==(const MicrobatchOrder&) const = default;
};

/// The microbatch of the step that a rank runs in its iteration i. Counter 0 is i, whatever the
/// loops around it; the coordinates are those on `recipe.mesh.axes`, those of axes with one rank
/// left out. Data ranks are numbered row-major in the mesh without its tensor axis, whose ranks
/// share their microbatches. `recipe` is a valid one.
///
/// `fast`: data rank d runs d, d + R, d + 2R, ... for R data ranks. `tree`: the same where ranks
/// sum each microbatch (`sync = "immediate"`), else k in a row from d * k on, so that each rank's
/// sum is a part of the tree.
Affine microbatchNumber(const Recipe& recipe);

/// The same on the rank at `coordinates`, one an axis of `recipe.mesh.axes`.
MicrobatchOrder microbatchOrder(const Recipe& recipe, std::span<const int64_t> coordinates);

} // namespace titan
