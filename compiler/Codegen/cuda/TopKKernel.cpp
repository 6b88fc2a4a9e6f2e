#include "compiler/Codegen/cuda/TopKKernel.h"

#include "compiler/Codegen/cuda/EmbeddingBuilder.h"
#include "compiler/Codegen/cuda/ThreadBuilder.h"
#include "compiler/Codegen/cuda/Threads.h"
#include "compiler/Codegen/kernel/BodyEmitter.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace titan::codegen::cuda {
namespace {

/// Each element goes to the place that those before it leave: a total order, whose places no two
/// elements share. So nothing is exchanged, and who counts decides nothing.
class TopKEmitter : ThreadBuilder {
public:
  TopKEmitter(OpBuilder& builder, kernel::CallOp call, func::FuncOp function)
      : ThreadBuilder(builder, call.getLoc()), routine(cast<kernel::TopKAttr>(call.getRoutine())),
        x(function.getArgument(0)), values(function.getArgument(1)),
        indices(function.getArgument(2)), stored(storedType(elementOf(call.getIns()[0]))),
        isUnsigned(stored.isUnsignedInteger()) {
    if (isa<IntegerType>(stored)) // arithmetic knows no signedness
      stored = builder.getIntegerType(stored.getIntOrFloatBitWidth());
  }

  void emit() {
    const int64_t elements = routine.getRows() * routine.getLength();
    overUnits(builder, loc, elements, [&](Value number) {
      SmallVector<Value> at =
          splitNumber(builder, loc, number, {routine.getRows(), routine.getLength()});
      emitElement(at[0], at[1]);
    });
  }

private:
  void emitElement(Value row, Value place) {
    Value start = address(x, stored, mul(row, routine.getLength()));
    Value own = valueAt(start, place);
    Value before = count(index(0), place, index(0), [&](Value at) {
      Value isBehind = isBefore(own, valueAt(start, at)); // equal elements keep their order
      return create<arith::XOrIOp>(isBehind, create<arith::ConstantOp>(builder.getBoolAttr(true)));
    });
    before = count(add(place, 1), index(routine.getLength()), before,
                   [&](Value at) { return isBefore(valueAt(start, at), own); });
    when(isBelow(before, routine.getCount()), [&] {
      Value to = add(mul(row, routine.getCount()), before);
      const int64_t bytes = bytesOf(stored);
      store(load(stored, address(start, stored, place), bytes), address(values, stored, to), bytes);
      Type i64 = builder.getI64Type();
      store(create<arith::IndexCastUIOp>(i64, place), address(indices, i64, to), bytesOf(i64));
    });
  }

  /// `first` and one more for each place in [low, high) where `holds`.
  Value count(Value low, Value high, Value first, llvm::function_ref<Value(Value place)> holds) {
    return emitLoop(builder, loc, low, high, 1, first,
                    [&](Value place, ValueRange counted) -> SmallVector<Value> {
                      Value one =
                          create<arith::IndexCastUIOp>(builder.getIndexType(), holds(place));
                      return {add(counted[0], one)};
                    })[0];
  }

  Value valueAt(Value row, Value place) {
    Value value = load(stored, address(row, stored, place), bytesOf(stored));
    return stored.isBF16() ? widen(value) : value;
  }

  /// Strictly. NaN is the largest.
  Value isBefore(Value a, Value b) {
    if (!routine.getSmallest())
      std::swap(a, b);
    if (!isa<FloatType>(stored))
      return create<arith::CmpIOp>(
          isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, a, b);
    Value isLess = create<arith::CmpFOp>(arith::CmpFPredicate::OLT, a, b);
    Value isNumber = create<arith::CmpFOp>(arith::CmpFPredicate::ORD, a, a);
    Value isNan = create<arith::CmpFOp>(arith::CmpFPredicate::UNO, b, b);
    return create<arith::OrIOp>(isLess, both(isNumber, isNan));
  }

  kernel::TopKAttr routine;
  Value x, values, indices; ///< addresses
  Type stored;
  bool isUnsigned;
};

} // namespace

LogicalResult emitTopKKernel(KernelModule& kernels, kernel::CallOp call, StringRef symbol) {
  auto routine = cast<kernel::TopKAttr>(call.getRoutine());
  Type element = elementOf(call.getIns()[0]);
  if (element.isF16())
    return call.emitError() << ir::describePlace(call) << ": the order of " << element
                            << " has no kernel on cuda";
  const int64_t elements = routine.getRows() * routine.getLength(),
                chosen = routine.getRows() * routine.getCount();
  using Use = EntryOperand::Use;
  Entry entry{symbol.str(), flatBlocks(elements), flatThreads, {}, 0};
  entry.operands = {{Use::Read, elements * bytesOf(element)},
                    {Use::Write, chosen * bytesOf(element)},
                    {Use::Write, chosen * 8}};
  OpBuilder builder(call.getContext());
  func::FuncOp function = kernels.add(builder, call.getLoc(), std::move(entry));
  TopKEmitter(builder, call, function).emit();
  func::ReturnOp::create(builder, call.getLoc());
  return success();
}

} // namespace titan::codegen::cuda
