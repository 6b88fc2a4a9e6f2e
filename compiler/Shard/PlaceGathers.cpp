#include "compiler/Shard/PlaceGathers.h"

#include "compiler/Support/LoopChain.h"
#include "compiler/Support/StateNames.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace titan {

namespace {

/// Uses in one phase and block that share a gather.
struct Gather {
  const Conversion* conversion;
  Block* block;
  ir::Phase phase;
  SmallVector<OpOperand*> uses = {};
  bool isKept = false; ///< forward's, which backward reads, too
};

/// One for each value, block of readers and phase; with "step" the block is that of the value.
SmallVector<Gather> gathersOf(ArrayRef<Conversion> conversions, const MeshRecipe& recipe) {
  SmallVector<Gather> gathers;
  for (const Conversion& conversion : conversions) {
    const size_t first = gathers.size();
    for (OpOperand* use : conversion.uses) {
      Block* block = recipe.reshard == "step" ? conversion.block() : use->getOwner()->getBlock();
      const ir::Phase phase = ir::getPhase(use->getOwner());
      auto* mine = std::find_if(gathers.begin() + first, gathers.end(), [&](const Gather& each) {
        return each.block == block && each.phase == phase;
      });
      if (mine == gathers.end())
        mine = &gathers.emplace_back(Gather{&conversion, block, phase});
      mine->uses.push_back(use);
    }
  }
  return gathers;
}

/// The last op of `gather.block` that reads what is gathered.
Operation* lastReader(const Gather& gather) {
  Operation* last = nullptr;
  for (OpOperand* use : gather.uses) {
    Operation* user = gather.block->findAncestorOpInBlock(*use->getOwner());
    if (!last || last->isBeforeInBlock(user))
      last = user;
  }
  return last;
}

/// What forward gathers and backward reads again, if `gather` is forward's.
Gather* backwardOf(const Gather& gather, MutableArrayRef<Gather> gathers) {
  if (gather.phase != ir::Phase::Forward)
    return nullptr;
  auto* found = llvm::find_if(gathers, [&](const Gather& each) {
    return each.conversion == gather.conversion && each.block == gather.block &&
           each.phase == ir::Phase::Backward;
  });
  return found == gathers.end() ? nullptr : found;
}

/// Does the recipe keep what is gathered for forward?
bool isKeptByRecipe(const Gather& gather, const FunctionPlacements& placements,
                    const MeshRecipe& recipe) {
  if (recipe.reshard != "always")
    return true;
  ir::StateOp state = stateOf(gather.conversion->value, placements);
  return state && llvm::any_of(recipe.kept,
                               [&](const std::string& glob) { return matchesName(glob, state); });
}

/// Of the gathers of one block that backward repeats, those for the op that stands last: backward
/// begins with it, so that dropping them would gain nothing.
void keepLast(MutableArrayRef<Gather> gathers) {
  llvm::MapVector<Block*, Operation*> last;
  for (Gather& gather : gathers) {
    if (!backwardOf(gather, gathers))
      continue;
    Operation *&known = last[gather.block], *mine = lastReader(gather);
    if (!known || known->isBeforeInBlock(mine))
      known = mine;
  }
  for (Gather& gather : gathers)
    if (backwardOf(gather, gathers) && lastReader(gather) == last[gather.block])
      gather.isKept = true;
}

/// Lets backward read what forward has gathered, where it is kept.
void mergeKept(SmallVector<Gather>& gathers, const FunctionPlacements& placements,
               const MeshRecipe& recipe) {
  keepLast(gathers);
  for (Gather& gather : gathers)
    gather.isKept |= isKeptByRecipe(gather, placements, recipe);
  for (Gather& gather : gathers) {
    Gather* backward = gather.isKept ? backwardOf(gather, gathers) : nullptr;
    gather.isKept = backward;
    if (backward)
      gather.uses.append(std::exchange(backward->uses, {}));
  }
  llvm::erase_if(gathers, [](const Gather& gather) { return gather.uses.empty(); });
}

StringRef reasonOf(const Gather& gather, const MeshRecipe& recipe) {
  if (recipe.reshard == "step")
    return "each microbatch reads all of it: gathered once a step";
  if (gather.phase == ir::Phase::Backward)
    return "backward reads all of it, which forward has dropped or never had";
  return gather.isKept ? "forward and backward read all of it: kept in between"
                       : "forward reads all of it";
}

/// Does the strategy ask for `gather`: a parameter that a layer reads?
bool isAskedFor(const Gather& gather, const FunctionPlacements& placements) {
  ir::StateOp state = stateOf(gather.conversion->value, placements);
  return state && state.getKind() == ir::StateKind::Param && gather.phase != ir::Phase::Update;
}

/// "all_gather of fc.weight over shard, 64 bytes"
std::string describe(dist::AllGatherOp op, const Conversion& conversion,
                     const FunctionPlacements& placements) {
  return llvm::formatv("all_gather of {0} over {1}, {2} bytes", ir::pathString(op),
                       llvm::join(op.getAxes().getAsValueRange<StringAttr>(), ", "),
                       bytesOf(typeBefore(conversion, placements)));
}

} // namespace

LogicalResult placeGathers(ArrayRef<Conversion> conversions, FunctionPlacements& placements,
                           const MeshRecipe& recipe) {
  SmallVector<Gather> gathers = gathersOf(conversions, recipe);
  mergeKept(gathers, placements, recipe);
  for (const Gather& gather : gathers) {
    const Conversion& conversion = *gather.conversion;
    Operation* reader = firstReader(gather.uses, gather.block);
    OpBuilder builder(reader);
    auto op = dist::AllGatherOp::create(
        builder, reader->getLoc(), joinedTypeOf(conversion, placements), conversion.value,
        conversion.step.dim, conversion.step.axes,
        builder.getStrArrayAttr(StringRef(nameOf(conversion, placements))),
        ir::PhaseAttr::get(builder.getContext(), gather.phase));
    const std::string what = describe(op, conversion, placements);
    const auto options = remark::RemarkOpts::name("partition").category("shard");
    if (isAskedFor(gather, placements)) {
      remark::passed(op.getLoc(), options)
          << remark::add("{0}: {1}", what, reasonOf(gather, recipe));
    } else {
      remark::missed(op.getLoc(), options)
          << remark::add("{0}: '{1}' reads all of it, and mesh.strategy = \"{2}\" has no use for "
                         "this",
                         what, reader->getName().getStringRef(), recipe.strategy);
      if (!recipe.allowReshard)
        return reader->emitError() << what << ": mesh.strategy = \"" << recipe.strategy
                                   << "\" asks for no such gather: set mesh.allow_reshard = true "
                                      "if the job shall make it";
    }
    placements.define(op.getResult(0), conversion.value, conversion.step.result);
    const Value whole = cutJoined(builder, conversion, op.getResult(0), placements);
    for (OpOperand* use : gather.uses)
      use->set(whole);
  }
  return success();
}

} // namespace titan
