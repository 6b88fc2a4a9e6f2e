#include "compiler/Codegen/cpu/UnitEmitter.h"

#include "compiler/Codegen/cpu/KeptValues.h"
#include "compiler/Codegen/cpu/Sweep.h"
#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/Loops.h"

using namespace mlir;

namespace titan::codegen {
namespace {

Value valueOf(const Reduction* reduction) { return kernel::ReduceOp(reduction->op).getValue(); }

} // namespace

UnitEmitter::UnitEmitter(BodyEmitter& body, const VectorShape& shape, func::FuncOp function)
    : body(body), builder(body.builder), loc(body.loc), nest(body.nest), shape(shape),
      passes(body, shape, function) {}

OperandRange UnitEmitter::yielded() {
  return cast<kernel::YieldOp>(kernel::FusedOp(nest.op).getBlock().getTerminator()).getValues();
}

SmallVector<Value> UnitEmitter::roots() {
  SmallVector<Value> roots;
  for (const Reduction& reduction : nest.reductions)
    roots.push_back(valueOf(&reduction));
  llvm::append_range(roots, yielded());
  return roots;
}

SmallVector<unsigned> UnitEmitter::outsWhere(llvm::function_ref<bool(DimSet)> wanted) {
  SmallVector<unsigned> outs;
  for (auto [i, out] : llvm::enumerate(nest.outs))
    if (wanted(out.dims()))
      outs.push_back(i);
  return outs;
}

LogicalResult UnitEmitter::emit(const std::optional<Block>& block) {
  if (std::optional<unsigned> row = sweepDim(nest))
    return emitSweep(*row, block);
  DimSet blockBit = block ? bit(block->dim) : 0;
  auto lacksBlock = [&](DimSet dims) { return (dims & blockBit) == 0; };
  if (!block) {
    SmallVector<ReductionGroup> groups = groupsOf([](const Reduction&) { return true; });
    DimSet row = groups.empty() ? 0 : inner(groups.front().front()->space);
    SmallVector<Value> last;
    for (auto [value, out] : llvm::zip_equal(yielded(), nest.outs))
      if (inner(out.dims()) == row)
        last.push_back(value);
    if (failed(emitReductions(groups, row, last)))
      return failure();
    emitStores(outsWhere([](DimSet) { return true; }), block);
    return success();
  }
  for (const ReductionGroup& group :
       groupsOf([&](const Reduction& r) { return lacksBlock(r.space); }))
    if (failed(passes.emit(group, nullptr)))
      return failure();
  if (failed(emitBlock(*block)))
    return failure();
  // What lacks the block dimension is written once: by the unit of its first block.
  emitStores(outsWhere(lacksBlock), block);
  return success();
}

/// The passes of `groups` over the dimensions `row`, before another that asks for `last`. What
/// several of them need is kept from the first.
LogicalResult UnitEmitter::emitReductions(ArrayRef<ReductionGroup> groups, DimSet row,
                                          ArrayRef<Value> last) {
  SmallVector<RowPass> rowPasses;
  for (const ReductionGroup& group : groups) {
    RowPass& pass = rowPasses.emplace_back();
    pass.dims = inner(group.front()->space);
    for (const Reduction* reduction : group)
      pass.roots.push_back(valueOf(reduction));
  }
  rowPasses.push_back({row, SmallVector<Value>(last)});
  SmallVector<KeptValue> kept;
  if (row != 0)
    kept = chooseKeptValues(nest, rowPasses, row, shape.machine);

  for (auto [i, group] : llvm::enumerate(groups)) {
    SmallVector<std::pair<Value, const Memory*>> computed;
    for (const KeptValue& value : kept)
      if (value.pass == i) {
        FailureOr<const Memory*> memory = passes.allocate(value.value, row);
        if (failed(memory))
          return failure();
        computed.push_back({value.value, *memory});
      }
    auto keep = [&] {
      for (auto [value, memory] : computed)
        body.store(*memory, body.getLanes(value));
    };
    LogicalResult emitted =
        passes.emit(group, computed.empty() ? nullptr : llvm::function_ref<void()>(keep));
    if (failed(emitted))
      return failure();
    for (auto [value, memory] : computed)
      body.setMemory(value, memory);
  }
  return success();
}

/// Vectors along the block dimension, each with its own reductions and results.
LogicalResult UnitEmitter::emitBlock(const Block& block) {
  DimSet blockBit = bit(block.dim);
  SmallVector<unsigned> outs = outsWhere([&](DimSet dims) { return (dims & blockBit) != 0; });
  SmallVector<ReductionGroup> groups =
      groupsOf([&](const Reduction& reduction) { return (reduction.space & blockBit) != 0; });
  LogicalResult result = success();
  body.hoist(roots());
  overBlock(block, groups.empty() ? shape.elementwise() : shape.reduction(), [&] {
    SmallVector<unsigned> left = outs;
    for (const ReductionGroup& group : groups) {
      SmallVector<unsigned> together;
      if (&group == &groups.back())
        together = outsWrittenWith(nest, passes.bound, group, left);
      LogicalResult emitted = passes.emit(group, [&] {
        SmallVector<Value> values;
        for (unsigned out : together)
          values.push_back(body.get(yielded()[out]));
        for (auto [out, value] : llvm::zip_equal(together, values))
          body.store(out, value);
      });
      if (failed(emitted))
        result = failure();
      llvm::erase_if(left, [&](unsigned out) { return llvm::is_contained(together, out); });
    }
    emitStores(left, block);
  });
  return result;
}

/// Down the rows once: each row's own reductions, then one pass that adds to the sums of the
/// columns and writes what belongs to the row; at the end what belongs to the columns.
LogicalResult UnitEmitter::emitSweep(unsigned row, const std::optional<Block>& block) {
  DimSet rowBit = bit(row),
         columns = block ? bit(block->dim) : nest.allDims() & ~passes.bound & ~rowBit;
  auto isColumn = [&](const Reduction& reduction) { return reduction.over == rowBit; };
  SmallVector<std::pair<kernel::ReduceOp, const Memory*>> sums;
  for (const Reduction& reduction : nest.reductions) {
    if (!isColumn(reduction))
      continue;
    kernel::ReduceOp op = reduction.op;
    FailureOr<const Memory*> memory =
        block ? passes.allocateBlock(op, block->dim, block->start, block->length)
              : passes.allocate(op, columns);
    if (failed(memory))
      return failure();
    sums.push_back({op, *memory});
  }
  body.hoist(roots());
  overPoints(columns, block, {}, [&] {
    for (auto [op, memory] : sums)
      body.store(*memory,
                 reductionIdentity(builder, loc, op.getKind(), op.getType(), body.lanes()->length));
  });

  LogicalResult result = success();
  emitLoop(builder, loc, body.index(0), body.index(nest.extents[row]), 1, {},
           [&](Value induction, ValueRange) {
             BodyEmitter::Scope scope(body, {{row, induction}});
             passes.bound |= rowBit;
             result = emitSweptRow(row, columns, sums, block);
             passes.bound &= ~rowBit;
             return SmallVector<Value>();
           });
  for (auto [op, memory] : sums)
    body.setMemory(op.getResult(), memory);
  emitStores(outsWhere([&](DimSet dims) { return (dims & rowBit) == 0; }), block);
  return result;
}

LogicalResult UnitEmitter::emitSweptRow(unsigned row, DimSet columns,
                                        ArrayRef<std::pair<kernel::ReduceOp, const Memory*>> sums,
                                        const std::optional<Block>& block) {
  SmallVector<unsigned> whole, partial; // outs of every point of the row, or of fewer
  for (unsigned out : outsWhere([&](DimSet dims) { return contains(dims, row); }))
    ((nest.outs[out].dims() & columns) == columns ? whole : partial).push_back(out);
  SmallVector<Value> needed;
  for (auto [op, memory] : sums)
    needed.push_back(kernel::ReduceOp(op).getValue());
  for (unsigned out : whole)
    needed.push_back(yielded()[out]);
  if (failed(emitReductions(groupsOf([&](const Reduction& r) { return r.over != bit(row); }),
                            columns, needed)))
    return failure();
  body.hoist(needed);
  overPoints(columns, block, needed, [&] {
    SmallVector<Value> values; // all that is read before anything is written
    for (Value value : needed)
      values.push_back(body.getLanes(value));
    for (auto [i, sum] : llvm::enumerate(sums)) {
      auto [op, memory] = sum;
      body.store(*memory, combine(builder, loc, kernel::ReduceOp(op).getKind(), body.load(*memory),
                                  values[i]));
    }
    for (auto [out, value] : llvm::zip_equal(whole, ArrayRef(values).drop_front(sums.size())))
      body.store(out, value);
  });
  emitStores(partial, block);
  return success();
}

//===----------------------------------------------------------------------===//
// Stores and loops
//===----------------------------------------------------------------------===//

void UnitEmitter::emitStores(ArrayRef<unsigned> outs, const std::optional<Block>& block) {
  SmallVector<unsigned> pending(outs);
  llvm::sort(pending, [&](unsigned a, unsigned b) {
    return std::pair(-llvm::popcount(nest.outs[a].dims()), a) <
           std::pair(-llvm::popcount(nest.outs[b].dims()), b);
  });
  while (!pending.empty()) {
    DimSet dims = nest.outs[pending[0]].dims();
    SmallVector<unsigned> group, others;
    for (unsigned out : pending)
      (nest.outs[out].dims() == dims ? group : others).push_back(out);
    emitStoreGroup(group, dims, block);
    pending = others;
  }
}

void UnitEmitter::emitStoreGroup(ArrayRef<unsigned> outs, DimSet dims,
                                 const std::optional<Block>& block) {
  SmallVector<Value> values;
  for (unsigned out : outs)
    values.push_back(yielded()[out]);
  onlyFirst(dims, block, [&] {
    BodyEmitter::Scope scope(body, {});
    overPoints(dims, block, values, [&] {
      SmallVector<Value> computed;
      for (Value value : values)
        computed.push_back(body.get(value));
      for (auto [out, value] : llvm::zip_equal(outs, computed))
        body.store(out, value);
    });
  });
}

void UnitEmitter::onlyFirst(DimSet dims, const std::optional<Block>& block,
                            llvm::function_ref<void()> write) {
  Value first;
  for (unsigned dim : listOf(nest.parallelDims() & ~dims)) {
    Value coordinate = block && dim == block->dim ? block->start : body.coordinate(dim);
    Value isZero =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, coordinate, body.index(0));
    first = first ? arith::AndIOp::create(builder, loc, first, isZero).getResult() : isZero;
  }
  if (!first)
    return write();
  emitIf(builder, loc, first, {}, [&] {
    write();
    return SmallVector<Value>();
  });
}

void UnitEmitter::overPoints(DimSet dims, const std::optional<Block>& block, ArrayRef<Value> roots,
                             llvm::function_ref<void()> step) {
  if (block && contains(dims, block->dim) && !body.lanes())
    return overBlock(*block, shape.elementwise(), step);
  passes.overPoints(inner(dims), shape.elementwise(), roots, [&](ValueRange) {
    step();
    return SmallVector<Value>();
  });
}

void UnitEmitter::overBlock(const Block& block, int64_t longest, llvm::function_ref<void()> step) {
  int64_t extent = nest.extents[block.dim];
  Value high = body.index(std::min(extent, block.length));
  if (extent > block.length) {
    high = arith::AddIOp::create(builder, loc, block.start, high);
    high = arith::MinUIOp::create(builder, loc, high, body.index(extent));
  }
  passes.overLanes(block.dim, block.start, high, vectorLength(extent, shape.width, longest), {},
                   [&](ValueRange) {
                     step();
                     return SmallVector<Value>();
                   });
}

} // namespace titan::codegen
