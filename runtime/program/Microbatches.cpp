#include "runtime/program/Microbatches.h"

namespace titan {

Affine microbatchNumber(const Recipe& recipe) {
  const bool isInARow = recipe.mesh.reduce == "tree" && recipe.mesh.sync != "immediate";
  int64_t stride = isInARow ? recipe.localMicrobatches() : 1; // from a data rank to the next
  Affine number = Affine::counter(0, isInARow ? 1 : recipe.dataRanks());
  for (size_t axis = recipe.mesh.axes.size(); axis-- > 0;) {
    const auto& [name, ranks] = recipe.mesh.axes[axis];
    if (name == "tensor" || ranks == 1)
      continue;
    number = number + Affine{0, {{Affine::meshVariable(static_cast<uint8_t>(axis)), stride}}};
    stride *= ranks;
  }
  return number;
}

MicrobatchOrder microbatchOrder(const Recipe& recipe, std::span<const int64_t> coordinates) {
  const Affine number = onRank(microbatchNumber(recipe), coordinates);
  return {number.base, number.terms.front().stride};
}

} // namespace titan
