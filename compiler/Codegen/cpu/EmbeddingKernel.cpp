#include "compiler/Codegen/cpu/EmbeddingKernel.h"

#include "compiler/Codegen/cpu/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

class Emitter {
public:
  Emitter(OpBuilder& builder, kernel::CallOp op, StringRef name, int64_t entries)
      : builder(builder), loc(op.getLoc()), op(op), entries(entries) {
    function = createKernelFunction(builder, loc, name);
    builder.setInsertionPointToStart(&function.getBody().front());
    operands = loadOperands(builder, loc, function, 3);
  }

  /// Runs `body` for the units that the function is called for.
  void overUnits(llvm::function_ref<void(Value unit)> body) {
    auto position = [&](unsigned argument) {
      return arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                        function.getArgument(argument));
    };
    Value begin = position(2), end = position(3);
    over(begin, end, body);
    func::ReturnOp::create(builder, loc);
  }

  void over(Value low, Value high, llvm::function_ref<void(Value)> body) {
    emitLoop(builder, loc, low, high, 1, {}, [&](Value induction, ValueRange) {
      body(induction);
      return SmallVector<Value>();
    });
  }

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value mul(Value a, int64_t factor) {
    return arith::MulIOp::create(builder, loc, a, constant(factor));
  }

  Value address(unsigned operand, Value element) {
    Value position = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), element);
    return LLVM::GEPOp::create(builder, loc, operands[operand].getType(), stored(operand),
                               operands[operand], LLVM::GEPArg(position));
  }
  Type stored(unsigned operand) { return storedType(elementOf(op->getOperand(operand))); }

  /// The table's row that index `i` names: clamped.
  Value entryAt(Value i) {
    auto type = cast<IntegerType>(elementOf(op.getIns()[1]));
    bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
    Value value = LLVM::LoadOp::create(builder, loc, stored(1), address(1, i));
    Type wide = builder.getI64Type();
    if (stored(1) != wide)
      value = isUnsigned ? arith::ExtUIOp::create(builder, loc, wide, value).getResult()
                         : arith::ExtSIOp::create(builder, loc, wide, value).getResult();
    auto limit = [&](int64_t bound) {
      return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(bound));
    };
    // An unsigned index of 64 bits may look negative; it is too large.
    if (isUnsigned) {
      value = arith::MinUIOp::create(builder, loc, value, limit(entries - 1));
    } else {
      value = arith::MaxSIOp::create(builder, loc, value, limit(0));
      value = arith::MinSIOp::create(builder, loc, value, limit(entries - 1));
    }
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }

  OpBuilder& builder;
  Location loc;
  kernel::CallOp op;
  int64_t entries;
  func::FuncOp function;
  SmallVector<Value> operands;
};

} // namespace

void emitEmbeddingKernel(OpBuilder& builder, kernel::CallOp op, StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  auto routine = cast<kernel::EmbeddingAttr>(op.getRoutine());
  Emitter emitter(builder, op, name, routine.getEntries());
  int64_t width = routine.getWidth();
  int64_t bytes = width * (emitter.stored(0).getIntOrFloatBitWidth() / 8);
  emitter.overUnits([&](Value row) {
    Value from = emitter.address(0, emitter.mul(emitter.entryAt(row), width));
    Value to = emitter.address(2, emitter.mul(row, width));
    Value count = arith::ConstantOp::create(builder, op.getLoc(), builder.getI64IntegerAttr(bytes));
    LLVM::MemcpyOp::create(builder, op.getLoc(), to, from, count, /*isVolatile=*/false);
  });
}

void emitEmbeddingGradKernel(OpBuilder& builder, kernel::CallOp op, StringRef name) {
  OpBuilder::InsertionGuard guard(builder);
  auto routine = cast<kernel::EmbeddingGradAttr>(op.getRoutine());
  Emitter emitter(builder, op, name, routine.getEntries());
  Location loc = op.getLoc();
  int64_t width = routine.getWidth(), columns = routine.getColumns();
  Type from = emitter.stored(0), to = emitter.stored(2);
  auto load = [&](unsigned operand, Value element, int64_t length) -> Value {
    Type type = emitter.stored(operand);
    return LLVM::LoadOp::create(builder, loc, VectorType::get({length}, type),
                                emitter.address(operand, element),
                                type.getIntOrFloatBitWidth() / 8);
  };
  auto store = [&](Value value, Value element) {
    LLVM::StoreOp::create(builder, loc, value, emitter.address(2, element),
                          to.getIntOrFloatBitWidth() / 8);
  };
  auto emitColumns = [&](Value first, int64_t length) {
    auto type = VectorType::get({length}, to);
    if (!routine.getAccumulate()) {
      Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
      emitter.over(emitter.constant(0), emitter.constant(routine.getEntries()), [&](Value entry) {
        store(zero, emitter.add(emitter.mul(entry, width), first));
      });
    }
    emitter.over(emitter.constant(0), emitter.constant(routine.getRows()), [&](Value row) {
      Value term = load(0, emitter.add(emitter.mul(row, width), first), length);
      if (from != to)
        term = arith::ExtFOp::create(builder, loc, type, term);
      Value at = emitter.add(emitter.mul(emitter.entryAt(row), width), first);
      store(arith::AddFOp::create(builder, loc, load(2, at, length), term), at);
    });
  };
  emitter.overUnits([&](Value unit) {
    Value first = emitter.mul(unit, columns);
    int64_t whole = width / columns, rest = width % columns;
    if (rest == 0)
      return emitColumns(first, columns);
    Value isWhole = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, unit,
                                          emitter.constant(whole));
    auto branch = [&](int64_t length) {
      return [&, length](OpBuilder&, Location) {
        emitColumns(first, length);
        scf::YieldOp::create(builder, loc);
      };
    };
    scf::IfOp::create(builder, loc, isWhole, branch(columns), branch(rest));
  });
}

} // namespace titan::codegen
