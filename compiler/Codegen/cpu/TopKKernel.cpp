#include "compiler/Codegen/cpu/TopKKernel.h"

#include "compiler/Codegen/cpu/KernelBuilder.h"

using namespace mlir;

namespace titan::codegen {
namespace {

using arith::CmpFPredicate;
using arith::CmpIPredicate;

class Emitter : public KernelBuilder {
public:
  Emitter(OpBuilder& builder, kernel::CallOp op, func::FuncOp function)
      : KernelBuilder(builder, op.getLoc(), /*width=*/1),
        routine(cast<kernel::TopKAttr>(op.getRoutine())),
        operands(loadOperands(builder, loc, function, 3)), length(index(routine.getLength())) {
    element = cast<MemRefType>(op.getIns()[0].getType()).getElementType();
    isUnsigned = element.isUnsignedInteger();
    if (isa<IntegerType>(element)) // arithmetic knows no signedness
      element = builder.getIntegerType(element.getIntOrFloatBitWidth());
    orders = stack(2 * routine.getLength(), i32);
  }

  void emitRow(Value row) {
    Value x = at(operands[0], mul(row, routine.getLength()), element);
    loop(0, routine.getLength(), 1, [&](Value i) { storeNumber(i, i); });
    const auto passes = static_cast<int64_t>(llvm::Log2_64_Ceil(routine.getLength()));
    loop(0, passes, 1, [&](Value pass) { mergeRuns(x, pass); });
    Value sorted = orderOf(index(passes));
    loop(0, routine.getCount(), 1, [&](Value i) {
      Value number = numberAt(add(sorted, i)), to = add(mul(row, routine.getCount()), i);
      store(load(element, at(x, number, element)), at(operands[1], to, element));
      store(toI64(number), at(operands[2], to, builder.getI64Type()));
    });
  }

private:
  /// Where the numbers stand that pass `pass` reads.
  Value orderOf(Value pass) { return mul(remainder(pass, 2), length); }
  Value numberAt(Value place) {
    return create<arith::IndexCastUIOp>(indexType, load(i32, at(orders, place, i32)));
  }
  void storeNumber(Value number, Value place) {
    store(create<arith::IndexCastUIOp>(i32, number), at(orders, place, i32));
  }

  /// Each two neighbouring runs of 2^pass numbers become one.
  void mergeRuns(Value x, Value pass) {
    Value from = orderOf(pass), to = orderOf(add(pass, 1));
    Value run = create<arith::ShLIOp>(index(1), pass);
    Value pairs = divideCeil(length, add(run, run));
    loop(index(0), pairs, 1, [&](Value pair) {
      Value begin = mul(pair, add(run, run));
      Value middle = fewer(add(begin, run), length), end = fewer(add(middle, run), length);
      emitLoop(builder, loc, begin, end, 1, ValueRange{begin, middle},
               [&](Value place, ValueRange next) -> SmallVector<Value> {
                 Value left = next[0], right = next[1];
                 // An exhausted side is not read: its neighbour is, which decides nothing.
                 Value a = numberAt(add(from, fewer(left, sub(middle, index(1)))));
                 Value b = numberAt(add(from, fewer(right, sub(end, index(1)))));
                 Value isLeftDone = compare(CmpIPredicate::uge, left, middle);
                 Value isRightLeft = compare(CmpIPredicate::ult, right, end);
                 Value takesRight = create<arith::AndIOp>(
                     isRightLeft,
                     create<arith::OrIOp>(isLeftDone, isBefore(valueAt(x, b), valueAt(x, a))));
                 storeNumber(select(takesRight, b, a), add(to, place));
                 Value step = create<arith::IndexCastUIOp>(indexType, takesRight);
                 return {add(left, sub(index(1), step)), add(right, step)};
               });
    });
  }

  Value valueAt(Value x, Value number) {
    Value value = load(element, at(x, number, element));
    const bool isNarrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
    return isNarrow ? create<arith::ExtFOp>(f32, value) : value;
  }

  /// Strictly: equal elements keep their order. NaN is the largest.
  Value isBefore(Value a, Value b) {
    if (!routine.getSmallest())
      std::swap(a, b);
    if (!isa<FloatType>(element))
      return compare(isUnsigned ? CmpIPredicate::ult : CmpIPredicate::slt, a, b);
    Value less = create<arith::CmpFOp>(CmpFPredicate::OLT, a, b);
    Value isNumber = create<arith::CmpFOp>(CmpFPredicate::ORD, a, a);
    Value isNaN = create<arith::CmpFOp>(CmpFPredicate::UNO, b, b);
    return create<arith::OrIOp>(less, create<arith::AndIOp>(isNumber, isNaN));
  }

  kernel::TopKAttr routine;
  SmallVector<Value> operands;
  Value length, orders; ///< two orders, from which and to which a pass merges
  Type element;
  bool isUnsigned = false;
};

} // namespace

void emitTopKKernel(OpBuilder& builder, kernel::CallOp op, StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, op.getLoc(), name);
  builder.setInsertionPointToStart(&function.getBody().front());
  Emitter b(builder, op, function);
  b.loop(b.toIndex(function.getArgument(2)), b.toIndex(function.getArgument(3)), 1,
         [&](Value row) { b.emitRow(row); });
  func::ReturnOp::create(builder, b.loc);
}

} // namespace titan::codegen
