#include "compiler/Codegen/cpu/FusedKernel.h"

#include "compiler/Codegen/cpu/BodyEmitter.h"
#include "compiler/Codegen/cpu/Loops.h"
#include "compiler/Codegen/cpu/ReductionPass.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace titan::codegen {
namespace {

// Elements of a unit of an elementwise kernel: small enough to divide over threads, large enough
// that the decoding of the unit's number does not show.
constexpr int64_t flatBlock = 4096;

class KernelEmitter {
public:
  KernelEmitter(OpBuilder& builder, const LoopNest& nest, const VectorShape& shape,
                func::FuncOp function, ValueRange operands)
      : builder(builder), loc(function.getLoc()), nest(nest), shape(shape), function(function),
        body(builder, nest, operands, function.getArgument(1)), passes(body, shape, function) {}

  LogicalResult emit() {
    BodyEmitter::Scope root(body, {});
    UnitPlan plan = planUnits(nest, shape);
    auto position = [&](unsigned argument) {
      return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                        function.getArgument(argument));
    };
    Value begin = position(2), end = position(3);
    body.hoist(rootsOfBody());
    LogicalResult result = success();
    emitLoop(builder, loc, begin, end, 1, {}, [&](Value unit, ValueRange) {
      result = emitUnit(unit, plan);
      return SmallVector<Value>();
    });
    return result;
  }

private:
  SmallVector<Value> rootsOfBody() {
    SmallVector<Value> roots;
    for (const Reduction& reduction : nest.reductions)
      roots.push_back(kernel::ReduceOp(reduction.op).getValue());
    llvm::append_range(roots, yielded());
    return roots;
  }

  OperandRange yielded() {
    return cast<kernel::YieldOp>(kernel::FusedOp(nest.op).getBlock().getTerminator()).getValues();
  }

  LogicalResult emitUnit(Value unit, const UnitPlan& plan) {
    std::optional<unsigned> block = nest.blockDim();
    SmallVector<std::pair<unsigned, Value>> coordinates;
    Value rest = unit, blockStart;
    auto split = [&](int64_t extent) {
      Value value = rest;
      if (extent == 1)
        return body.index(0);
      value = arith::RemUIOp::create(builder, loc, rest, body.index(extent));
      rest = arith::DivUIOp::create(builder, loc, rest, body.index(extent));
      return value;
    };
    SmallVector<unsigned, 4> outer =
        listOf(nest.parallelDims() & ~(block ? bit(*block) : DimSet{0}));
    if (block) {
      int64_t blocks = llvm::divideCeil(nest.extents[*block], plan.blockLength);
      Value number = outer.empty() ? rest : split(blocks);
      blockStart = blocks == 1
                       ? body.index(0)
                       : arith::MulIOp::create(builder, loc, number, body.index(plan.blockLength))
                             .getResult();
    }
    for (unsigned dim : llvm::reverse(outer))
      coordinates.push_back({dim, dim == outer.front() ? rest : split(nest.extents[dim])});

    BodyEmitter::Scope scope(body, coordinates);
    DimSet blockBit = block ? bit(*block) : 0;
    if (failed(emitReductions(0, blockBit)))
      return failure();
    LogicalResult result = success();
    if (block)
      result = emitBlock(*block, blockStart, plan.blockLength);
    // What lacks the block dimension is written once: by the unit of its first block.
    emitStores(0, blockBit, blockStart);
    return result;
  }

  /// Vectors along the block dimension, each with its own reductions and results.
  LogicalResult emitBlock(unsigned dim, Value start, int64_t blockLength) {
    int64_t extent = nest.extents[dim];
    int64_t widest = nest.reductions.empty() ? shape.elementwise() : shape.reduction();
    int64_t length = vectorLength(extent, shape.width, widest);
    body.hoist(rootsOfBody());
    LogicalResult result = success();
    Value high = body.index(std::min(extent, blockLength));
    if (extent > blockLength) {
      high = arith::AddIOp::create(builder, loc, start, high);
      high = arith::MinUIOp::create(builder, loc, high, body.index(extent));
    }
    passes.overLanes(dim, start, high, length, {}, [&](ValueRange) {
      if (failed(emitReductions(bit(dim), bit(dim))))
        result = failure();
      emitStores(bit(dim), bit(dim), Value());
      return SmallVector<Value>();
    });
    return result;
  }

  /// The reductions whose space & mask == wanted, level by level; equal loops are shared.
  LogicalResult emitReductions(DimSet wanted, DimSet mask) {
    for (unsigned level = 0; level < nest.levels(); ++level) {
      SmallVector<const Reduction*> pending;
      for (const Reduction& reduction : nest.reductions)
        if (reduction.level == level && reduction.over != 0 && (reduction.space & mask) == wanted)
          pending.push_back(&reduction);
      while (!pending.empty()) {
        SmallVector<const Reduction*> group, others;
        for (const Reduction* reduction : pending) {
          bool same = reduction->over == pending[0]->over &&
                      inner(reduction->space) == inner(pending[0]->space);
          (same ? group : others).push_back(reduction);
        }
        if (failed(passes.emit(group)))
          return failure();
        pending = others;
      }
    }
    return success();
  }

  /// The dimensions of `set` that loops inside of a unit run over.
  DimSet inner(DimSet set) const { return set & ~nest.parallelDims(); }

  /// Writes the outs whose dims & mask == wanted. Those that walk the most dimensions come first:
  /// an out may lie on an in that it walks alike, and only passes over more dimensions read that in
  /// once more.
  void emitStores(DimSet wanted, DimSet mask, Value blockStart) {
    SmallVector<unsigned> pending;
    for (auto [i, out] : llvm::enumerate(nest.outs))
      if ((out.dims() & mask) == wanted)
        pending.push_back(i);
    llvm::stable_sort(pending, [&](unsigned a, unsigned b) {
      return llvm::popcount(nest.outs[a].dims()) > llvm::popcount(nest.outs[b].dims());
    });
    while (!pending.empty()) {
      DimSet dims = nest.outs[pending[0]].dims();
      SmallVector<unsigned> group, others;
      for (unsigned out : pending)
        (nest.outs[out].dims() == dims ? group : others).push_back(out);
      emitStoreGroup(group, dims, blockStart);
      pending = others;
    }
  }

  void emitStoreGroup(ArrayRef<unsigned> outs, DimSet dims, Value blockStart) {
    SmallVector<Value> values;
    for (unsigned out : outs)
      values.push_back(yielded()[out]);
    // A result that lacks parallel dimensions is the same at all of their points: the first writes.
    Value first;
    auto require = [&](Value coordinate) {
      Value isZero =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, coordinate, body.index(0));
      first = first ? arith::AndIOp::create(builder, loc, first, isZero).getResult() : isZero;
    };
    std::optional<unsigned> block = nest.blockDim();
    for (unsigned dim : listOf(nest.parallelDims() & ~dims))
      if (!block || dim != *block)
        require(body.coordinate(dim));
      else
        require(blockStart);
    auto write = [&](ValueRange) {
      SmallVector<Value> computed;
      for (Value value : values)
        computed.push_back(body.get(value));
      for (auto [out, value] : llvm::zip_equal(outs, computed))
        body.store(out, value);
      return SmallVector<Value>();
    };
    auto guarded = [&] {
      BodyEmitter::Scope scope(body, {});
      passes.overPoints(inner(dims), shape.elementwise(), values, write);
      return SmallVector<Value>();
    };
    if (first)
      emitIf(builder, loc, first, {}, guarded);
    else
      guarded();
  }

  OpBuilder& builder;
  Location loc;
  const LoopNest& nest;
  const VectorShape& shape;
  func::FuncOp function;
  BodyEmitter body;
  ReductionPass passes;
};

} // namespace

UnitPlan planUnits(const LoopNest& nest, const VectorShape& shape) {
  UnitPlan plan;
  std::optional<unsigned> block = nest.blockDim();
  for (unsigned dim : listOf(nest.parallelDims()))
    if (!block || dim != *block)
      plan.units *= nest.extents[dim];
  if (block) {
    int64_t extent = nest.extents[*block];
    plan.blockLength =
        nest.reductions.empty() ? flatBlock : vectorLength(extent, shape.width, shape.reduction());
    plan.units *= llvm::divideCeil(extent, plan.blockLength);
  }
  return plan;
}

func::FuncOp createKernelFunction(OpBuilder& builder, Location loc, StringRef name) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext()), i64 = builder.getI64Type();
  auto function = func::FuncOp::create(builder, loc, name,
                                       builder.getFunctionType({pointer, pointer, i64, i64}, {}));
  function.addEntryBlock();
  return function;
}

SmallVector<Value> loadOperands(OpBuilder& builder, Location loc, func::FuncOp function,
                                unsigned count) {
  Value list = function.getArgument(0);
  SmallVector<Value> operands;
  for (unsigned i = 0; i < count; ++i) {
    Value slot = LLVM::GEPOp::create(builder, loc, list.getType(), list.getType(), list,
                                     LLVM::GEPArg(static_cast<int32_t>(i)));
    operands.push_back(LLVM::LoadOp::create(builder, loc, list.getType(), slot));
  }
  return operands;
}

FailureOr<func::FuncOp> emitFusedKernel(OpBuilder& builder, kernel::FusedOp op, StringRef name,
                                        const VectorShape& shape) {
  OpBuilder::InsertionGuard guard(builder);
  LoopNest nest(op);
  if (nest.rank() > 64)
    return op.emitOpError("has ") << nest.rank() << " dimensions, more than 64";
  func::FuncOp function = createKernelFunction(builder, op.getLoc(), name);
  builder.setInsertionPointToStart(&function.getBody().front());
  SmallVector<Value> operands =
      loadOperands(builder, op.getLoc(), function, op.getIns().size() + op.getOuts().size());
  if (failed(KernelEmitter(builder, nest, shape, function, operands).emit())) {
    function.erase();
    return failure();
  }
  func::ReturnOp::create(builder, op.getLoc());
  return function;
}

} // namespace titan::codegen
