#include "compiler/Codegen/kernel/EqualReductions.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// Finds what one reduction has in the place of each in of another.
class Matcher {
public:
  Matcher(const LoopNest& nest, DimSet over, llvm::function_ref<bool(Value)> isStored)
      : nest(nest), over(over), isStored(isStored) {}

  bool match(Value ours, Value theirs) {
    auto [known, isNew] = places.try_emplace(ours, theirs);
    return isNew ? ours.getType() == theirs.getType() && compare(ours, theirs)
                 : known->second == theirs;
  }

  /// By in of ours, in the order in which it is read.
  SmallVector<std::pair<unsigned, unsigned>> ins() const {
    SmallVector<std::pair<unsigned, unsigned>> found;
    for (auto [ours, theirs] : places)
      if (isRead(ours))
        found.push_back(
            {cast<BlockArgument>(ours).getArgNumber(), cast<BlockArgument>(theirs).getArgNumber()});
    return found;
  }

private:
  const LoopNest& nest;
  DimSet over;
  llvm::function_ref<bool(Value)> isStored;
  llvm::SmallMapVector<Value, Value, 8> places;

  /// What does not vary along the reduced dimensions is computed before the loops.
  bool varies(Value value) const { return (nest.dependence(value) & over) != 0; }
  bool isRead(Value value) const { return isa<BlockArgument>(value) && varies(value); }

  bool compare(Value ours, Value theirs) {
    Operation *our = ours.getDefiningOp(), *their = theirs.getDefiningOp();
    if (isa_and_present<arith::ConstantOp>(our))
      return their && our->getName() == their->getName() &&
             our->getAttrDictionary() == their->getAttrDictionary();
    if (!varies(ours) || !varies(theirs) || isStored(ours) || isStored(theirs))
      return ours == theirs;
    if (!our || !their)
      return !our && !their && isAlike(inOf(ours), inOf(theirs));
    return our->getName() == their->getName() &&
           our->getAttrDictionary() == their->getAttrDictionary() &&
           cast<OpResult>(ours).getResultNumber() == cast<OpResult>(theirs).getResultNumber() &&
           llvm::all_of(llvm::zip_equal(our->getOperands(), their->getOperands()),
                        [&](auto pair) { return match(std::get<0>(pair), std::get<1>(pair)); });
  }

  const Access& inOf(Value argument) const {
    return nest.ins[cast<BlockArgument>(argument).getArgNumber()];
  }
  static bool isAlike(const Access& a, const Access& b) {
    return a.element == b.element && a.offset == b.offset && a.strides == b.strides;
  }
};

} // namespace

SmallVector<EqualReductions> findEqualReductions(const LoopNest& nest,
                                                 ArrayRef<const Reduction*> group,
                                                 llvm::function_ref<bool(Value)> isStored) {
  SmallVector<EqualReductions> classes;
  auto join = [&](EqualReductions& known, const Reduction* reduction) {
    kernel::ReduceOp first = known.members.front()->op, op = reduction->op;
    Matcher matcher(nest, reduction->over, isStored);
    if (first.getKind() != op.getKind() || known.members.front()->space != reduction->space ||
        !matcher.match(first.getValue(), op.getValue()))
      return false;
    const auto ins = matcher.ins();
    const bool isShared = llvm::any_of(ins, [&](auto in) {
      return llvm::any_of(known.places,
                          [&](const auto& place) { return llvm::is_contained(place, in.second); });
    });
    if (isShared)
      return false;
    known.members.push_back(reduction);
    for (auto [place, in] : llvm::zip_equal(known.places, ins))
      place.push_back(in.second);
    return true;
  };
  for (const Reduction* reduction : group)
    if (llvm::none_of(classes, [&](EqualReductions& known) { return join(known, reduction); })) {
      EqualReductions& known = classes.emplace_back();
      known.members.push_back(reduction);
      kernel::ReduceOp op = reduction->op;
      Matcher matcher(nest, reduction->over, isStored);
      matcher.match(op.getValue(), op.getValue());
      for (auto [ours, theirs] : matcher.ins()) {
        known.ins.push_back(ours);
        known.places.push_back({theirs});
      }
    }
  return classes;
}

} // namespace titan::codegen
