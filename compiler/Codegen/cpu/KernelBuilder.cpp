#include "compiler/Codegen/cpu/KernelBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen {
namespace {

int64_t alignmentOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrFloat() ? std::max<int64_t>(element.getIntOrFloatBitWidth() / 8, 1) : 8;
}

/// The levels of the cache that a line comes into, as LLVM counts them: 3 is all.
void emitPrefetch(KernelBuilder& b, Value pointer, bool toWrite, unsigned locality) {
  constexpr unsigned data = 1;
  LLVM::Prefetch::create(b.builder, b.loc, pointer, toWrite, locality, data);
}

} // namespace

int64_t stackBytes(func::FuncOp function) {
  int64_t bytes = 0;
  function.walk([&](LLVM::AllocaOp op) {
    APInt count;
    if (matchPattern(op.getArraySize(), m_ConstantInt(&count)))
      bytes += count.getSExtValue() * op.getElemType().getIntOrFloatBitWidth() / 8;
  });
  return bytes;
}

KernelBuilder::KernelBuilder(OpBuilder& builder, Location loc, int64_t width)
    : builder(builder), loc(loc),
      module(builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>()), width(width),
      pointer(LLVM::LLVMPointerType::get(builder.getContext())), indexType(builder.getIndexType()),
      f32(builder.getF32Type()), bf16(builder.getBF16Type()), i32(builder.getI32Type()),
      i16(builder.getI16Type()), i8(builder.getI8Type()) {}

Value KernelBuilder::index(int64_t value) { return create<arith::ConstantIndexOp>(value); }
Value KernelBuilder::add(Value a, Value b) { return create<arith::AddIOp>(a, b); }
Value KernelBuilder::sub(Value a, Value b) { return create<arith::SubIOp>(a, b); }
Value KernelBuilder::mul(Value a, Value b) { return create<arith::MulIOp>(a, b); }
Value KernelBuilder::divide(Value a, int64_t b) {
  return b == 1 ? a : create<arith::DivUIOp>(a, index(b));
}
Value KernelBuilder::divideCeil(Value a, Value b) {
  return create<arith::DivUIOp>(sub(add(a, b), index(1)), b);
}
Value KernelBuilder::remainder(Value a, int64_t b) { return create<arith::RemUIOp>(a, index(b)); }
Value KernelBuilder::fewer(Value a, Value b) { return create<arith::MinUIOp>(a, b); }
Value KernelBuilder::smaller(Value a, Value b) { return create<arith::MinSIOp>(a, b); }
Value KernelBuilder::larger(Value a, Value b) { return create<arith::MaxSIOp>(a, b); }
Value KernelBuilder::less(Value a, Value b) { return compare(arith::CmpIPredicate::slt, a, b); }
Value KernelBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return create<arith::CmpIOp>(predicate, a, b);
}
Value KernelBuilder::select(Value condition, Value a, Value b) {
  return create<arith::SelectOp>(condition, a, b);
}
Value KernelBuilder::flag(bool value) {
  return create<arith::ConstantOp>(builder.getBoolAttr(value));
}
Value KernelBuilder::toIndex(Value i64) { return create<arith::IndexCastOp>(indexType, i64); }
Value KernelBuilder::toI64(Value index) {
  return create<arith::IndexCastOp>(builder.getI64Type(), index);
}

Value KernelBuilder::at(Value pointer, Value offset, Type element) {
  return create<LLVM::GEPOp>(pointer.getType(), element, pointer, LLVM::GEPArg(toI64(offset)));
}
Value KernelBuilder::load(Type type, Value pointer) {
  return create<LLVM::LoadOp>(type, pointer, alignmentOf(type));
}
void KernelBuilder::store(Value value, Value pointer) {
  LLVM::StoreOp::create(builder, loc, value, pointer, alignmentOf(value.getType()));
}
Value KernelBuilder::loadMasked(VectorType type, Value pointer, Value mask) {
  return create<LLVM::MaskedLoadOp>(type, pointer, mask, zeros(type),
                                    builder.getI32IntegerAttr(alignmentOf(type)), UnitAttr());
}
void KernelBuilder::storeMasked(Value value, Value pointer, Value mask) {
  LLVM::MaskedStoreOp::create(builder, loc, value, pointer, mask, alignmentOf(value.getType()));
}
void KernelBuilder::prefetch(Value pointer) { emitPrefetch(*this, pointer, false, 3); }
void KernelBuilder::prefetchToSecondLevel(Value pointer) { emitPrefetch(*this, pointer, false, 2); }
void KernelBuilder::prefetchToWrite(Value pointer) { emitPrefetch(*this, pointer, true, 3); }
Value KernelBuilder::stack(int64_t elements, Type element) {
  OpBuilder::InsertionGuard guard(builder);
  Operation* function = builder.getInsertionBlock()->getParentOp();
  if (!isa<func::FuncOp>(function))
    function = function->getParentOfType<func::FuncOp>();
  builder.setInsertionPointToStart(&cast<func::FuncOp>(function).getBody().front());
  Value count = create<arith::ConstantOp>(builder.getI64IntegerAttr(elements));
  return create<LLVM::AllocaOp>(pointer, element, count, /*alignment=*/64);
}

Value KernelBuilder::zeros(Type type) {
  return create<arith::ConstantOp>(builder.getZeroAttr(type));
}
Value KernelBuilder::splat(VectorType type, int64_t value) {
  return create<arith::ConstantOp>(
      DenseElementsAttr::get(type, builder.getIntegerAttr(type.getElementType(), value)));
}
Value KernelBuilder::broadcast(Value scalar) {
  return create<vector::BroadcastOp>(vectorOf(scalar.getType()), scalar);
}

Value KernelBuilder::maskBelow(Value count, int64_t lanes, int64_t first) {
  SmallVector<int64_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), first);
  Value lane = create<arith::ConstantOp>(builder.getI64VectorAttr(numbers));
  Value limit = create<vector::BroadcastOp>(lane.getType(), toI64(count));
  return compare(arith::CmpIPredicate::slt, lane, limit);
}

void KernelBuilder::transpose(SmallVectorImpl<Value>& rows) {
  // Blocks of 1, 2, 4, ... lanes change places between pairs of rows.
  auto lanes = static_cast<int64_t>(rows.size());
  for (int64_t half = 1; half < lanes; half *= 2) {
    SmallVector<int64_t> low(lanes), high(lanes);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      low[lane] = lane & half ? lanes + lane - half : lane;
      high[lane] = lane & half ? lanes + lane : lane + half;
    }
    for (int64_t row = 0; row < lanes; ++row)
      if ((row & half) == 0) {
        Value a = rows[row], b = rows[row + half];
        rows[row] = create<vector::ShuffleOp>(a, b, low);
        rows[row + half] = create<vector::ShuffleOp>(a, b, high);
      }
  }
}

void KernelBuilder::loop(Value low, Value high, int64_t step, function_ref<void(Value)> body) {
  emitLoop(builder, loc, low, high, step, {}, [&](Value induction, ValueRange) {
    body(induction);
    return SmallVector<Value>();
  });
}

void KernelBuilder::when(Value condition, function_ref<void()> then) {
  emitIf(builder, loc, condition, {}, [&] {
    then();
    return SmallVector<Value>();
  });
}

void KernelBuilder::choose(Value condition, function_ref<void()> then,
                           function_ref<void()> otherwise) {
  auto branch = [&](function_ref<void()> body) {
    return [this, body](OpBuilder&, Location) {
      body();
      scf::YieldOp::create(builder, loc);
    };
  };
  scf::IfOp::create(builder, loc, condition, branch(then), branch(otherwise));
}

void KernelBuilder::columns(int64_t columns, int64_t lanes, function_ref<void(Value, Value)> body) {
  int64_t whole = columns / lanes * lanes;
  loop(0, whole, lanes, [&](Value column) { body(column, Value()); });
  if (whole < columns)
    body(index(whole), maskBelow(index(columns - whole), lanes));
}

func::FuncOp KernelBuilder::getFunction(StringRef name, ArrayRef<Type> arguments,
                                        function_ref<void(Block&)> emit) {
  if (auto found = module.lookupSymbol<func::FuncOp>(name))
    return found;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  auto function = func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, {}));
  function.setPrivate();
  builder.setInsertionPointToStart(function.addEntryBlock());
  emit(function.getBody().front());
  func::ReturnOp::create(builder, loc);
  return function;
}

} // namespace titan::codegen
