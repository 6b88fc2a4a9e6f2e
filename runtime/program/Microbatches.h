// Which microbatches of a step each rank runs, and in which loops: the one rule that compiler,
// loader and interpreter share.
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
/// left out. The ranks of the tensor axis share their microbatches. `recipe` is a valid one.
///
/// It is a number of several digits: i, and the coordinate on each data axis. `fast`: i is the most
/// significant, so data ranks take turns. `tree`: i stands behind the coordinates on deferred axes,
/// so that each rank's sum is a part of the tree. Coordinates on axes that sum immediately come
/// last; else they are in the order of the mesh.
Affine microbatchNumber(const Recipe& recipe);

/// The same on the rank at `coordinates`, one an axis of `recipe.mesh.axes`.
MicrobatchOrder microbatchOrder(const Recipe& recipe, std::span<const int64_t> coordinates);

/// One of the nested loops over the microbatches of a step.
struct MicrobatchLoop {
  int64_t count = 1;         ///< iterations on all ranks together
  int64_t local = 1;         ///< of each
  std::vector<uint8_t> axes; ///< of `recipe.mesh.axes`: those that divide the iterations
  Affine index = {}; ///< of a rank's iteration among all: of counter 0, its own index, and of the
                     ///< coordinates on `axes`
};

/// The loops in which each sum over ranks stands right behind the one that its axes divide, the
/// outermost first, where `sync` is not `auto`. The counts multiply to the microbatches of the
/// step, row-major: the indices of all loops give microbatchNumber(). `tree`: those that no axis
/// divides run two iterations each, a level of the tree.
std::vector<MicrobatchLoop> microbatchLoops(const Recipe& recipe);

} // namespace titan
