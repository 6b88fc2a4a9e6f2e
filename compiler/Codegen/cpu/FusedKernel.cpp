#include "compiler/Codegen/cpu/FusedKernel.h"

#include "compiler/Codegen/cpu/Sweep.h"
#include "compiler/Codegen/cpu/UnitEmitter.h"
#include "compiler/Codegen/cpu/VectorMemory.h"
#include "compiler/Codegen/kernel/BodyEmitter.h"
#include "compiler/Codegen/kernel/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// The dimension along which vectors and units lie: the innermost one, if it is parallel. A short
/// one, as the channels of an image, would be a unit and a part of a vector for each of the points
/// around it. Where nothing is reduced any dimension may take its place: one along which operands
/// lie in memory, and the longest of those.
std::optional<unsigned> chooseBlockDim(const LoopNest& nest) {
  constexpr int64_t shortExtent = 8;
  std::optional<unsigned> chosen = nest.blockDim();
  if (!chosen || !nest.reductions.empty() || nest.extents[*chosen] >= shortExtent)
    return chosen;
  auto merit = [&](unsigned dim) {
    auto lies = [&](const Access& access) { return access.strides[dim] == 1; };
    return std::pair(llvm::count_if(nest.ins, lies) + llvm::count_if(nest.outs, lies),
                     nest.extents[dim]);
  };
  auto isLong = [&](unsigned dim) { return nest.extents[dim] >= shortExtent; };
  for (unsigned dim : listOf(nest.parallelDims()))
    if (isLong(dim) && (!isLong(*chosen) || merit(dim) > merit(*chosen)))
      chosen = dim;
  return chosen;
}

class KernelEmitter {
public:
  KernelEmitter(OpBuilder& builder, const LoopNest& nest, const VectorShape& shape,
                func::FuncOp function, ValueRange operands)
      : builder(builder), loc(function.getLoc()), nest(nest), shape(shape), function(function),
        memory(function.getArgument(1)), body(builder, nest, operands, memory),
        unitBody(body, shape, function) {}

  LogicalResult emit() {
    BodyEmitter::Scope root(body, {});
    UnitPlan plan = planUnits(nest, shape);
    auto position = [&](unsigned argument) {
      return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                        function.getArgument(argument));
    };
    Value begin = position(2), end = position(3);
    body.hoist(unitBody.roots());
    LogicalResult result = success();
    emitLoop(builder, loc, begin, end, 1, {}, [&](Value unit, ValueRange) {
      result = emitUnit(unit, plan);
      return SmallVector<Value>();
    });
    return result;
  }

private:
  /// Decodes the unit's number: a point of the outer parallel dimensions, a block of the innermost.
  LogicalResult emitUnit(Value unit, const UnitPlan& plan) {
    std::optional<unsigned> blockDim = plan.blockDim;
    SmallVector<std::pair<unsigned, Value>> coordinates;
    Value rest = unit;
    auto split = [&](int64_t extent) {
      Value value = rest;
      if (extent == 1)
        return body.index(0);
      value = arith::RemUIOp::create(builder, loc, rest, body.index(extent));
      rest = arith::DivUIOp::create(builder, loc, rest, body.index(extent));
      return value;
    };
    SmallVector<unsigned, 4> outer =
        listOf(nest.parallelDims() & ~(blockDim ? bit(*blockDim) : DimSet{0}));
    std::optional<Block> block;
    if (blockDim) {
      int64_t blocks = llvm::divideCeil(nest.extents[*blockDim], plan.blockLength);
      Value number = outer.empty() ? rest : split(blocks);
      Value start = blocks == 1
                        ? body.index(0)
                        : arith::MulIOp::create(builder, loc, number, body.index(plan.blockLength))
                              .getResult();
      block = Block{*blockDim, start, plan.blockLength};
    }
    for (unsigned dim : llvm::reverse(outer))
      coordinates.push_back({dim, dim == outer.front() ? rest : split(nest.extents[dim])});
    BodyEmitter::Scope scope(body, coordinates);
    return unitBody.emit(block);
  }

  OpBuilder& builder;
  Location loc;
  const LoopNest& nest;
  const VectorShape& shape;
  func::FuncOp function;
  VectorMemory memory;
  BodyEmitter body;
  UnitEmitter unitBody;
};

} // namespace

UnitPlan planUnits(const LoopNest& nest, const VectorShape& shape) {
  UnitPlan plan;
  std::optional<unsigned> block = plan.blockDim = chooseBlockDim(nest);
  plan.units = nest.pointsOf(nest.parallelDims() & ~(block ? bit(*block) : DimSet{0}));
  if (block) {
    int64_t extent = nest.extents[*block];
    plan.blockLength = sweepDim(nest) ? shape.machine.sweptBlock
                       : nest.reductions.empty()
                           ? shape.machine.flatBlock
                           : vectorLength(extent, shape.width, shape.reduction());
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
