#include "runtime/program/Microbatches.h"

namespace titan {

namespace {

/// The data axes of more than one rank whose ranks sum so.
std::vector<uint8_t> axesOf(const MeshRecipe& mesh, bool immediate) {
  std::vector<uint8_t> axes;
  for (size_t i = 0; i < mesh.axes.size(); ++i)
    if (const auto& [name, ranks] = mesh.axes[i];
        isDataAxis(name) && ranks > 1 && mesh.sync.isImmediate(name) == immediate)
      axes.push_back(static_cast<uint8_t>(i));
  return axes;
}

int64_t ranksOn(const MeshRecipe& mesh, const std::vector<uint8_t>& axes) {
  int64_t ranks = 1;
  for (uint8_t axis : axes)
    ranks *= mesh.axes[axis].ranks;
  return ranks;
}

int64_t strideOf(const Affine& value, uint8_t variable) {
  for (const Affine::Term& term : value.terms)
    if (term.variable == variable)
      return term.stride;
  return 0;
}

/// Of a tree: the levels that ranks sum once a step, those of a rank, and those that ranks sum with
/// each microbatch.
std::vector<MicrobatchLoop> treeLoops(const Recipe& recipe, const std::vector<uint8_t>& deferred,
                                      const std::vector<uint8_t>& immediate) {
  std::vector<MicrobatchLoop> loops;
  if (!deferred.empty())
    loops.push_back({ranksOn(recipe.mesh, deferred), 1, deferred});
  for (int64_t left = recipe.localMicrobatches(); left > 1; left /= 2)
    loops.push_back({2, 2, {}});
  if (!immediate.empty())
    loops.push_back({ranksOn(recipe.mesh, immediate), 1, immediate});
  return loops;
}

/// The loops but for their indices.
std::vector<MicrobatchLoop> countedLoops(const Recipe& recipe) {
  const std::vector<uint8_t> deferred = axesOf(recipe.mesh, false),
                             immediate = axesOf(recipe.mesh, true);
  const int64_t local = recipe.localMicrobatches(), global = recipe.globalMicrobatches();
  if (recipe.mesh.isTree() && local > 1)
    return treeLoops(recipe, deferred, immediate);
  // Nothing is summed before the step's end where all axes wait for it, or the first microbatch is
  // the last.
  const int64_t every = recipe.mesh.syncEvery;
  if (local > 1 && !immediate.empty()) {
    const int64_t inner = ranksOn(recipe.mesh, immediate);
    return {{global / inner, local, deferred}, {inner, 1, immediate}};
  }
  if (every > 0 && every < local && !deferred.empty())
    return {{local / every, local / every, {}},
            {every * ranksOn(recipe.mesh, deferred), every, deferred}};
  std::vector<uint8_t> axes = deferred;
  axes.insert(axes.end(), immediate.begin(), immediate.end());
  return {{global, local, axes}};
}

} // namespace

Affine microbatchNumber(const Recipe& recipe) {
  const bool isTree = recipe.mesh.isTree();
  Affine number;
  int64_t stride = 1; // of the next digit, from the least significant on
  auto addIterations = [&] {
    number = number + Affine::counter(0, stride);
    stride *= recipe.localMicrobatches();
  };
  for (bool immediate : {true, false}) {
    const std::vector<uint8_t> axes = axesOf(recipe.mesh, immediate);
    for (size_t i = axes.size(); i-- > 0; stride *= recipe.mesh.axes[axes[i]].ranks)
      number = number + Affine{0, {{Affine::meshVariable(axes[i]), stride}}};
    if (immediate == isTree)
      addIterations();
  }
  return number;
}

MicrobatchOrder microbatchOrder(const Recipe& recipe, std::span<const int64_t> coordinates) {
  const Affine number = onRank(microbatchNumber(recipe), coordinates);
  return {number.base, number.terms.front().stride};
}

std::vector<MicrobatchLoop> microbatchLoops(const Recipe& recipe) {
  const Affine number = microbatchNumber(recipe);
  std::vector<MicrobatchLoop> loops = countedLoops(recipe);
  int64_t unit = 1, iterations = 1; // microbatches of all ranks, and of one, in the loops inside
  for (size_t i = loops.size(); i-- > 0;) {
    MicrobatchLoop& loop = loops[i];
    if (loop.local > 1)
      loop.index = Affine::counter(0, strideOf(number, 0) * iterations / unit);
    for (uint8_t axis : loop.axes) {
      const uint8_t variable = Affine::meshVariable(axis);
      loop.index = loop.index + Affine{0, {{variable, strideOf(number, variable) / unit}}};
    }
    unit *= loop.count;
    iterations *= loop.local;
  }
  return loops;
}

} // namespace titan
