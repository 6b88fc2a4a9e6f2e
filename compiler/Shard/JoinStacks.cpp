#include "compiler/Shard/JoinStacks.h"

#include "compiler/Shard/Conversions.h"
#include "compiler/Support/LoopChain.h"
#include "dialects/Titan/TensorBuilder.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace titan {

namespace {

/// The number of an iteration among those of all ranks has a digit for each axis that divides the
/// loop, and one for the rank's own iteration.
struct Digit {
  int64_t extent;
  int64_t stride; ///< of the number
};

/// Those of `loop` in the order in which a gather leaves its rows: by rank, then by iteration.
SmallVector<Digit> digitsOf(const MicrobatchLoop& loop, dist::MeshAttr mesh) {
  const ArrayRef<Affine::Term> terms = loop.index.terms; // the rank's own iteration comes first
  SmallVector<Digit> digits;
  for (const Affine::Term& term : terms)
    if (term.variable != 0)
      digits.push_back({mesh.getExtents()[term.variable - Affine::meshVariable(0)], term.stride});
  if (loop.local > 1)
    digits.push_back({loop.local, terms.front().stride});
  return digits;
}

/// `rows`, with a dimension for each of `loops` in which a gather has joined what ranks have, in
/// the order of their iterations.
Value inOrder(const ir::TensorBuilder& t, Value rows, ArrayRef<MicrobatchLoop> loops,
              FunctionPlacements& placements) {
  SmallVector<int64_t> split, order;
  for (const MicrobatchLoop& loop : loops) {
    const SmallVector<Digit> digits = digitsOf(loop, placements.mesh());
    auto significant = llvm::to_vector(llvm::seq<int64_t>(digits.size()));
    llvm::sort(significant,
               [&](int64_t a, int64_t b) { return digits[a].stride > digits[b].stride; });
    for (int64_t digit : significant)
      order.push_back(static_cast<int64_t>(split.size()) + digit);
    for (const Digit& digit : digits)
      split.push_back(digit.extent);
  }
  if (llvm::is_sorted(order))
    return rows;
  const ArrayRef<int64_t> shape = ir::tensorType(rows).getShape();
  for (int64_t extent : shape.drop_front(loops.size())) {
    order.push_back(static_cast<int64_t>(split.size()));
    split.push_back(extent);
  }
  const Value apart = t.reshape(rows, split), ordered = t.transpose(apart, order),
              joined = t.reshape(ordered, shape);
  for (Value value : {apart, ordered, joined})
    placements.defineWhole(value);
  return joined;
}

/// The parts of `stacks` along the dimension of a loop that `axes` divide, joined.
SmallVector<Value> gather(OpBuilder& builder, ArrayRef<Value> stacks, ArrayRef<std::string> names,
                          int64_t dim, ArrayRef<uint8_t> axes, FunctionPlacements& placements) {
  const dist::MeshAttr mesh = placements.mesh();
  SmallVector<Attribute> axisNames;
  for (unsigned axis = 0; axis < mesh.getAxes().size(); ++axis)
    if (llvm::is_contained(axes, axis))
      axisNames.push_back(mesh.getAxes()[axis]);
  SmallVector<ValuePlacement> joined;
  SmallVector<Type> types;
  int64_t bytes = 0;
  for (Value stack : stacks) {
    ValuePlacement placement = placements[stack];
    for (uint8_t axis : axes)
      placement[axis] = AxisPlacement();
    types.push_back(localType(placements.wholeType(stack), placement, mesh));
    bytes += bytesOf(localType(placements.wholeType(stack), placements[stack], mesh));
    joined.push_back(std::move(placement));
  }
  auto path = llvm::map_to_vector(names, [](const std::string& name) { return StringRef(name); });
  auto op = dist::AllGatherOp::create(
      builder, stacks.front().getLoc(), types, stacks, SmallVector<int64_t>(stacks.size(), dim),
      builder.getArrayAttr(axisNames), builder.getStrArrayAttr(path),
      ir::PhaseAttr::get(builder.getContext(), ir::Phase::Update));
  for (auto [result, stack, placement] : llvm::zip_equal(op.getResults(), stacks, joined))
    placements.define(result, stack, placement);
  remark::passed(op.getLoc(), remark::RemarkOpts::name("partition").category("shard"))
      << remark::add("all_gather of {0} over {1}, {2} bytes: each rank has a row of each of its "
                     "own microbatches, and all need those of the step",
                     ir::pathString(op),
                     llvm::join(op.getAxes().getAsValueRange<StringAttr>(), ", "), bytes);
  return llvm::to_vector_of<Value>(op.getResults());
}

void joinStacks(accum::LoopOp loop, FunctionPlacements& placements) {
  SmallVector<Value> stacks;
  std::vector<std::string> names;
  for (Value stack : loop.getStacks())
    if (!stack.use_empty() &&
        llvm::any_of(placements[stack], [](AxisPlacement on) { return on.isShard(); })) {
      stacks.push_back(stack);
      names.push_back(returnedName(stack));
    }
  if (stacks.empty())
    return;
  // What of backward stands behind the loop comes first.
  SmallVector<OpOperand*> uses;
  for (Value stack : stacks)
    for (OpOperand& use : stack.getUses())
      uses.push_back(&use);
  OpBuilder builder(firstReader(uses, loop->getBlock()));
  const ArrayRef<MicrobatchLoop> loops = placements.loops();
  SmallVector<Value> joined = stacks;
  for (auto [dim, division] : llvm::enumerate(loops))
    if (!division.axes.empty())
      joined = gather(builder, joined, names, static_cast<int64_t>(dim), division.axes, placements);
  for (auto [stack, whole, name] : llvm::zip_equal(stacks, joined, names)) {
    const ir::TensorBuilder t(builder, loop.getLoc(), builder.getStrArrayAttr(StringRef(name)),
                              ir::PhaseAttr::get(builder.getContext(), ir::Phase::Update));
    const Value rows = inOrder(t, whole, loops, placements);
    stack.replaceUsesWithIf(rows,
                            [](OpOperand& use) { return !isa<dist::AllGatherOp>(use.getOwner()); });
  }
}

} // namespace

void joinStacks(func::FuncOp function, FunctionPlacements& placements) {
  for (auto loop : function.getOps<accum::LoopOp>())
    joinStacks(loop, placements);
}

} // namespace titan
