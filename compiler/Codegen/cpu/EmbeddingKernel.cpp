#include "compiler/Codegen/cpu/EmbeddingKernel.h"

#include "compiler/Codegen/cpu/KernelBuilder.h"
#include "compiler/Codegen/kernel/EntryIndex.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace titan::codegen {
namespace {

Type elementOf(Value buffer) { return cast<MemRefType>(buffer.getType()).getElementType(); }

/// A truth value is a byte in memory, and arithmetic knows no signedness.
Type storedType(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  return integer ? IntegerType::get(element.getContext(), std::max(8u, integer.getWidth()))
                 : element;
}

template <typename Routine> class Emitter : public KernelBuilder {
public:
  Emitter(OpBuilder& builder, kernel::CallOp op, func::FuncOp function)
      : KernelBuilder(builder, op.getLoc(), /*width=*/1), op(op), function(function),
        routine(cast<Routine>(op.getRoutine())), operands(loadOperands(builder, loc, function, 3)) {
  }

  /// Runs `body` for the units that the function is called for.
  void overUnits(llvm::function_ref<void(Value unit)> body) {
    Value begin = toIndex(function.getArgument(2)), end = toIndex(function.getArgument(3));
    loop(begin, end, 1, body);
    func::ReturnOp::create(builder, loc);
  }

  Value address(unsigned operand, Value element) {
    return at(operands[operand], element, stored(operand));
  }
  Type stored(unsigned operand) { return storedType(elementOf(op->getOperand(operand))); }

  /// The table's row that index `i` names: clamped.
  Value rowAt(Value i) {
    auto type = cast<IntegerType>(elementOf(op.getIns()[1]));
    return loadRow(builder, loc, operands[1], i, type, routine);
  }

  kernel::CallOp op;
  func::FuncOp function;
  Routine routine;
  SmallVector<Value> operands;
};

} // namespace

void emitEmbeddingKernel(OpBuilder& builder, kernel::CallOp op, StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, op.getLoc(), name);
  builder.setInsertionPointToStart(&function.getBody().front());
  Emitter<kernel::EmbeddingAttr> b(builder, op, function);
  int64_t width = b.routine.getWidth();
  int64_t bytes = width * (b.stored(0).getIntOrFloatBitWidth() / 8);
  b.overUnits([&](Value row) {
    Value from = b.address(0, b.mul(b.rowAt(row), width));
    Value to = b.address(2, b.mul(row, width));
    LLVM::MemcpyOp::create(builder, b.loc, to, from, b.toI64(b.index(bytes)), /*isVolatile=*/false);
  });
}

void emitEmbeddingGradKernel(OpBuilder& builder, kernel::CallOp op, StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  func::FuncOp function = createKernelFunction(builder, op.getLoc(), name);
  builder.setInsertionPointToStart(&function.getBody().front());
  Emitter<kernel::EmbeddingGradAttr> b(builder, op, function);
  kernel::EmbeddingGradAttr routine = b.routine;
  int64_t width = routine.getWidth(), columns = routine.getColumns();
  Type from = b.stored(0), to = b.stored(2);
  auto emitColumns = [&](Value first, int64_t length) {
    VectorType type = b.vectorOf(to, length);
    if (!routine.getAccumulate()) {
      Value zero = b.zeros(type);
      b.loop(0, routine.getTableRows(), 1,
             [&](Value entry) { b.store(zero, b.address(2, b.add(b.mul(entry, width), first))); });
    }
    b.loop(0, routine.getAllRows(), 1, [&](Value row) {
      Value term = b.load(b.vectorOf(from, length), b.address(0, b.add(b.mul(row, width), first)));
      if (from != to)
        term = b.create<arith::ExtFOp>(type, term);
      Value entry = b.rowAt(row);
      auto addTerm = [&] {
        Value at = b.add(b.mul(entry, width), first);
        Value sum = b.create<arith::AddFOp>(b.load(type, b.address(2, at)), term);
        b.store(sum, b.address(2, at));
      };
      if (routine.getPadding() < 0)
        return addTerm();
      Value isTrained = b.compare(arith::CmpIPredicate::ne, entry, b.index(routine.getPadding()));
      b.when(isTrained, addTerm);
    });
  };
  b.overUnits([&](Value unit) {
    Value first = b.mul(unit, columns);
    int64_t whole = width / columns, rest = width % columns;
    if (rest == 0)
      return emitColumns(first, columns);
    b.choose(
        b.compare(arith::CmpIPredicate::ult, unit, b.index(whole)),
        [&] { emitColumns(first, columns); }, [&] { emitColumns(first, rest); });
  });
}

} // namespace titan::codegen
