#include "compiler/Support/BlockOrder.h"

using namespace mlir;

namespace titan {

/// Between the numbers of neighbours at first: ops fit in between 32 times at one place.
static constexpr uint64_t gap = uint64_t{1} << 32;
/// Neighbours that are looked at for one with a number.
static constexpr unsigned reach = 16;

bool BlockOrder::isBefore(Operation* first, Operation* second) {
  auto firstAt = numbers_.find(first), secondAt = numbers_.find(second);
  if (firstAt == numbers_.end() || secondAt == numbers_.end()) {
    number(first);
    number(second);
    firstAt = numbers_.find(first);
    secondAt = numbers_.find(second);
  }
  return firstAt->second < secondAt->second;
}

void BlockOrder::number(Operation* op) {
  if (numbers_.contains(op))
    return;
  // The numbers that enclose it: those of the nearest ops with one, or of the block's ends.
  auto nearest = [&](auto next) -> std::optional<uint64_t> {
    Operation* other = next(op);
    for (unsigned i = 0; other && i < reach; ++i, other = next(other))
      if (auto found = numbers_.find(other); found != numbers_.end())
        return found->second;
    return std::nullopt;
  };
  std::optional<uint64_t> below = nearest([](Operation* at) { return at->getPrevNode(); });
  std::optional<uint64_t> above = nearest([](Operation* at) { return at->getNextNode(); });
  if (!below || !above || *above - *below < 2)
    return numberAll(*op->getBlock());
  numbers_[op] = *below + (*above - *below) / 2;
}

void BlockOrder::numberAll(Block& block) {
  uint64_t last = 0;
  for (Operation& op : block)
    numbers_[&op] = last += gap;
}

} // namespace titan
