#include "compiler/Shard/FunctionPlacements.h"
#include "compiler/Shard/Passes.h"
#include "compiler/Support/RecipeAttribute.h"
#include "compiler/Support/SumTree.h"
#include "dialects/Titan/TensorBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_GROUPTERMS
#include "compiler/Shard/Passes.h.inc"

namespace {

/// Terms of one sum, by what each rank has of them; those that all ranks have come last.
using Groups = llvm::MapVector<Attribute, SmallVector<Value>>;

Groups groupsOf(const SumTree& tree, const FunctionPlacements& placements) {
  Groups groups;
  SmallVector<Value> replicated;
  for (Value term : tree.terms) {
    const dist::PlacementAttr placement = toAttribute(placements[term], placements.mesh());
    if (placement.getAxes().empty())
      replicated.push_back(term);
    else
      groups[placement].push_back(term);
  }
  if (!groups.empty() && !replicated.empty())
    groups[dist::PlacementAttr::get(placements.mesh().getContext(), {}, {})] = replicated;
  return groups;
}

/// Adds the terms of each group, then the groups, if ranks have terms of the sum at all.
void group(ir::AddOp root, const FunctionPlacements& placements) {
  SumTree tree(root);
  if (llvm::none_of(tree.terms, [&](Value term) {
        return llvm::any_of(placements[term], [](AxisPlacement on) { return on.isPartial(); });
      }))
    return;
  const Groups groups = groupsOf(tree, placements);
  if (groups.size() < 2)
    return;
  OpBuilder builder(root);
  ir::TensorBuilder t(builder, root);
  Value sum;
  for (const auto& [placement, terms] : groups) {
    Value partial = terms.front();
    for (Value term : ArrayRef(terms).drop_front())
      partial = t.add(partial, term);
    sum = sum ? t.add(sum, partial) : partial;
  }
  tree.replaceBy(sum);
}

/// Sums of integers have no order.
bool isFloat(ir::AddOp add) { return isa<FloatType>(getElementTypeOrSelf(add.getType())); }

struct GroupTerms : impl::GroupTermsBase<GroupTerms> {
  void runOnOperation() override {
    if (!dist::meshOf(getOperation()))
      return;
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    const bool isTree = recipe->mesh.isTree();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      FailureOr<FunctionPlacements> placements =
          FunctionPlacements::of(function, FunctionPlacements::Source::Rules);
      if (failed(placements))
        return signalPassFailure();
      // Sums of the loop's body go on in each iteration, and are no terms of one sum.
      SmallVector<ir::AddOp> roots;
      for (auto add : function.getBody().front().getOps<ir::AddOp>())
        if (SumTree::isRoot(add) && !(isTree && isFloat(add)))
          roots.push_back(add);
      // The last first: the terms of the others are then values that were placed.
      for (ir::AddOp root : llvm::reverse(roots))
        group(root, *placements);
    }
  }
};

} // namespace

} // namespace titan
