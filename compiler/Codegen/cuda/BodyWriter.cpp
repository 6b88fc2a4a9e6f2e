#include "compiler/Codegen/cuda/BodyWriter.h"

#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/Combine.h"
#include "compiler/Codegen/kernel/Loops.h"
#include "compiler/Codegen/kernel/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen::cuda {

OperandRange BodyWriter::yielded() {
  return cast<kernel::YieldOp>(kernel::FusedOp(nest.op).getBlock().getTerminator()).getValues();
}

SmallVector<Value> BodyWriter::roots() {
  SmallVector<Value> roots;
  for (const Reduction& reduction : nest.reductions)
    roots.push_back(kernel::ReduceOp(reduction.op).getValue());
  llvm::append_range(roots, yielded());
  return roots;
}

SmallVector<unsigned> BodyWriter::outsWhere(llvm::function_ref<bool(DimSet)> wanted) {
  SmallVector<unsigned> outs;
  for (auto [i, out] : llvm::enumerate(nest.outs))
    if (wanted(out.dims()))
      outs.push_back(i);
  return outs;
}

SmallVector<int64_t> BodyWriter::extentsOf(ArrayRef<unsigned> dims) const {
  SmallVector<int64_t> extents;
  for (unsigned dim : dims)
    extents.push_back(nest.extents[dim]);
  return extents;
}

Value BodyWriter::identity(kernel::ReduceOp reduce, int64_t length) {
  return reductionIdentity(builder, loc, reduce.getKind(), reduce.getType(), length);
}

Value BodyWriter::firstLanes(Value sum, int64_t length) {
  if (cast<VectorType>(sum.getType()).getDimSize(0) == length)
    return sum;
  return vector::ExtractStridedSliceOp::create(builder, loc, sum, ArrayRef<int64_t>{0},
                                               ArrayRef<int64_t>{length}, ArrayRef<int64_t>{1});
}

Value BodyWriter::sumOfChunk(kernel::ReduceOp column, Value sums) {
  if (contains(nest.dependence(column.getValue()), body.lanes()->dim))
    return firstLanes(sums, body.lanes()->length);
  return vector::ExtractOp::create(builder, loc, sums, ArrayRef<int64_t>{0});
}

/// `term` may have fewer lanes than `sum`: the others keep theirs.
Value BodyWriter::combineTerm(kernel::ReduceOp reduce, Value sum, Value term) {
  if (sum.getType() == term.getType()) {
    Value result = combine(builder, loc, reduce.getKind(), sum, term);
    if (auto add = result.getDefiningOp<arith::AddFOp>())
      add->setAttr(runningSumAttr, builder.getUnitAttr());
    return result;
  }
  const int64_t length = cast<VectorType>(term.getType()).getDimSize(0);
  Value part = combine(builder, loc, reduce.getKind(), firstLanes(sum, length), term);
  return vector::InsertStridedSliceOp::create(builder, loc, part, sum, ArrayRef<int64_t>{0},
                                              ArrayRef<int64_t>{1});
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void BodyWriter::storeOuts(ArrayRef<unsigned> outs, DimSet dims) {
  SmallVector<Value> values;
  for (unsigned out : outs)
    values.push_back(body.get(yielded()[out]));
  writeOuts(outs, values, dims);
}

void BodyWriter::writeOuts(ArrayRef<unsigned> outs, ValueRange values, DimSet dims) {
  for (auto [out, value] : llvm::zip_equal(outs, values)) {
    Value isFirst;
    for (unsigned dim : listOf(dims & ~nest.outs[out].dims())) {
      Value isZero = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                           body.coordinate(dim), body.index(0));
      isFirst = isFirst ? arith::AndIOp::create(builder, loc, isFirst, isZero).getResult() : isZero;
    }
    when(isFirst, {}, [&, out = out, value = value] {
      BodyEmitter::Scope scope(body, {});
      body.store(out, value);
      return SmallVector<Value>();
    });
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

SmallVector<Value> BodyWriter::when(Value condition, ValueRange carried,
                                    llvm::function_ref<SmallVector<Value>()> then) {
  return condition ? emitIf(builder, loc, condition, carried, then) : then();
}

SmallVector<Value> BodyWriter::overPoints(ArrayRef<unsigned> dims, ArrayRef<Value> wanted,
                                          ValueRange carried, Step step) {
  if (dims.empty())
    return step(carried);
  body.hoist(wanted);
  return emitLoop(builder, loc, body.index(0), body.index(nest.extents[dims.front()]), 1, carried,
                  [&](Value induction, ValueRange values) {
                    BodyEmitter::Scope scope(body, {{dims.front(), induction}});
                    return overPoints(dims.drop_front(), wanted, values, step);
                  });
}

SmallVector<Value> BodyWriter::onLanes(unsigned dim, Value chunk, int64_t length,
                                       ValueRange carried, Step step) {
  Value base = arith::MulIOp::create(builder, loc, chunk, body.index(chunkLength));
  BodyEmitter::Scope scope(body, {}, Lanes{dim, base, length, Value()});
  return step(carried);
}

SmallVector<Value> BodyWriter::inLanes(unsigned dim, Value chunk, ValueRange carried, Step step) {
  const int64_t whole = nest.extents[dim] / chunkLength, rest = nest.extents[dim] % chunkLength;
  if (rest == 0)
    return onLanes(dim, chunk, chunkLength, carried, step);
  if (whole == 0)
    return onLanes(dim, body.index(0), rest, carried, step);
  Value isWhole =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, chunk, body.index(whole));
  auto lanesOf = [&](int64_t length) {
    scf::YieldOp::create(builder, loc, onLanes(dim, chunk, length, carried, step));
  };
  auto branch = scf::IfOp::create(
      builder, loc, isWhole, [&](OpBuilder&, Location) { lanesOf(chunkLength); },
      [&](OpBuilder&, Location) { lanesOf(rest); });
  return SmallVector<Value>(branch.getResults());
}

SmallVector<Value> BodyWriter::inChunk(ArrayRef<unsigned> dims, Value number, ValueRange carried,
                                       Step step) {
  SmallVector<int64_t> extents = extentsOf(dims);
  extents.back() = llvm::divideCeilSigned(extents.back(), chunkLength);
  SmallVector<Value> places = splitNumber(builder, loc, number, extents);
  SmallVector<std::pair<unsigned, Value>> coordinates;
  for (auto [dim, place] : llvm::zip(dims.drop_back(), places))
    coordinates.push_back({dim, place});
  BodyEmitter::Scope point(body, coordinates);
  return inLanes(dims.back(), places.back(), carried, step);
}

} // namespace titan::codegen::cuda
