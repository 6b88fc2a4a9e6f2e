#include "compiler/Codegen/cpu/AttentionBuilder.h"

#include "compiler/Codegen/cpu/Loops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen {
namespace {

int64_t alignmentOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrFloat() ? std::max<int64_t>(element.getIntOrFloatBitWidth() / 8, 1) : 8;
}

} // namespace

AttentionBuilder::AttentionBuilder(OpBuilder& builder, Location loc, FloatType scalar,
                                   int64_t width)
    : builder(builder), loc(loc),
      module(builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>()),
      scalar(scalar), width(width), vector(VectorType::get({width}, scalar)),
      pointer(LLVM::LLVMPointerType::get(builder.getContext())), indexType(builder.getIndexType()) {
}

Value AttentionBuilder::index(int64_t value) { return create<arith::ConstantIndexOp>(value); }
Value AttentionBuilder::add(Value a, Value b) { return create<arith::AddIOp>(a, b); }
Value AttentionBuilder::sub(Value a, Value b) { return create<arith::SubIOp>(a, b); }
Value AttentionBuilder::mul(Value a, Value b) { return create<arith::MulIOp>(a, b); }
Value AttentionBuilder::divide(Value a, int64_t b) {
  return b == 1 ? a : create<arith::DivUIOp>(a, index(b));
}
Value AttentionBuilder::remainder(Value a, int64_t b) {
  return create<arith::RemUIOp>(a, index(b));
}
Value AttentionBuilder::smaller(Value a, Value b) { return create<arith::MinSIOp>(a, b); }
Value AttentionBuilder::larger(Value a, Value b) { return create<arith::MaxSIOp>(a, b); }
Value AttentionBuilder::less(Value a, Value b) {
  return create<arith::CmpIOp>(arith::CmpIPredicate::slt, a, b);
}
Value AttentionBuilder::select(Value condition, Value a, Value b) {
  return create<arith::SelectOp>(condition, a, b);
}
Value AttentionBuilder::flag(bool value) {
  return create<arith::ConstantOp>(builder.getBoolAttr(value));
}
Value AttentionBuilder::toIndex(Value i64) { return create<arith::IndexCastOp>(indexType, i64); }
Value AttentionBuilder::toI64(Value index) {
  return create<arith::IndexCastOp>(builder.getI64Type(), index);
}

Value AttentionBuilder::at(Value pointer, Value offset, Type element) {
  return create<LLVM::GEPOp>(pointer.getType(), element, pointer, LLVM::GEPArg(toI64(offset)));
}
Value AttentionBuilder::load(Type type, Value pointer) {
  return create<LLVM::LoadOp>(type, pointer, alignmentOf(type));
}
void AttentionBuilder::store(Value value, Value pointer) {
  LLVM::StoreOp::create(builder, loc, value, pointer, alignmentOf(value.getType()));
}
Value AttentionBuilder::loadMasked(VectorType type, Value pointer, Value mask) {
  return create<LLVM::MaskedLoadOp>(type, pointer, mask, zeros(type),
                                    builder.getI32IntegerAttr(alignmentOf(type)), UnitAttr());
}
void AttentionBuilder::storeMasked(Value value, Value pointer, Value mask) {
  LLVM::MaskedStoreOp::create(builder, loc, value, pointer, mask, alignmentOf(value.getType()));
}
void AttentionBuilder::prefetch(Value pointer) {
  constexpr unsigned forReading = 0, keep = 3, data = 1;
  LLVM::Prefetch::create(builder, loc, pointer, forReading, keep, data);
}
Value AttentionBuilder::stack(int64_t elements, Type element) {
  OpBuilder::InsertionGuard guard(builder);
  Operation* function = builder.getInsertionBlock()->getParentOp();
  if (!isa<func::FuncOp>(function))
    function = function->getParentOfType<func::FuncOp>();
  builder.setInsertionPointToStart(&cast<func::FuncOp>(function).getBody().front());
  Value count = create<arith::ConstantOp>(builder.getI64IntegerAttr(elements));
  return create<LLVM::AllocaOp>(pointer, element, count, /*alignment=*/64);
}

Value AttentionBuilder::number(double value) {
  return create<arith::ConstantOp>(builder.getFloatAttr(scalar, value));
}
Value AttentionBuilder::numbers(double value) {
  return create<arith::ConstantOp>(
      DenseElementsAttr::get(vector, builder.getFloatAttr(scalar, value)));
}
Value AttentionBuilder::splat(VectorType type, int64_t value) {
  return create<arith::ConstantOp>(
      DenseElementsAttr::get(type, builder.getIntegerAttr(type.getElementType(), value)));
}
Value AttentionBuilder::zeros(VectorType type) {
  return create<arith::ConstantOp>(builder.getZeroAttr(type));
}
Value AttentionBuilder::broadcast(Value value) {
  return create<vector::BroadcastOp>(vector, value);
}

Value AttentionBuilder::maskBelow(Value count, int64_t lanes) {
  SmallVector<int64_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value lane = create<arith::ConstantOp>(builder.getI64VectorAttr(numbers));
  Value limit = create<vector::BroadcastOp>(lane.getType(), toI64(count));
  return create<arith::CmpIOp>(arith::CmpIPredicate::slt, lane, limit);
}

Value AttentionBuilder::fma(Value a, Value b, Value c) { return create<math::FmaOp>(a, b, c); }

Value AttentionBuilder::maximum(Value a, Value b) {
  return select(create<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, b), a, b);
}

Value AttentionBuilder::sumLanes(Value value) {
  for (int64_t half = width / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low(half), high(half);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), half);
    Value a = create<vector::ShuffleOp>(value, value, low);
    Value b = create<vector::ShuffleOp>(value, value, high);
    value = create<arith::AddFOp>(a, b);
  }
  return create<vector::ExtractOp>(value, ArrayRef<int64_t>{0});
}

void AttentionBuilder::transpose(SmallVectorImpl<Value>& rows) {
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

// A bf16 is the upper half of an f32.
Value AttentionBuilder::widen(Value value) {
  Type element = getElementTypeOrSelf(value);
  if (element == scalar)
    return value;
  auto type = cast<VectorType>(value.getType());
  if (!element.isInteger(16))
    return create<arith::ExtFOp>(type.clone(scalar), value);
  VectorType bits = type.clone(builder.getI32Type());
  Value upper = create<arith::ShLIOp>(create<arith::ExtUIOp>(bits, value), splat(bits, 16));
  return create<arith::BitcastOp>(type.clone(scalar), upper);
}

Value AttentionBuilder::narrow(Value value, Type element) {
  if (element == scalar)
    return value;
  auto type = cast<VectorType>(value.getType());
  if (!element.isInteger(16))
    return create<arith::TruncFOp>(type.clone(element), value);
  // To nearest, ties to even. A NaN could overflow to another number.
  constexpr int64_t halfMinusOne = 0x7fff, quietNan = 0x7fc0;
  VectorType bits = type.clone(builder.getI32Type());
  Value whole = create<arith::BitcastOp>(bits, value);
  Value upper = create<arith::ShRUIOp>(whole, splat(bits, 16));
  Value odd = create<arith::AndIOp>(upper, splat(bits, 1));
  Value rounding = create<arith::AddIOp>(odd, splat(bits, halfMinusOne));
  Value rounded = create<arith::ShRUIOp>(create<arith::AddIOp>(whole, rounding), splat(bits, 16));
  Value isNan = create<arith::CmpFOp>(arith::CmpFPredicate::UNO, value, value);
  rounded = select(isNan, splat(bits, quietNan), rounded);
  return create<arith::TruncIOp>(type.clone(element), rounded);
}

void AttentionBuilder::loop(Value low, Value high, int64_t step, function_ref<void(Value)> body) {
  emitLoop(builder, loc, low, high, step, {}, [&](Value induction, ValueRange) {
    body(induction);
    return SmallVector<Value>();
  });
}

void AttentionBuilder::when(Value condition, function_ref<void()> then) {
  emitIf(builder, loc, condition, {}, [&] {
    then();
    return SmallVector<Value>();
  });
}

void AttentionBuilder::columns(int64_t columns, int64_t lanes,
                               function_ref<void(Value, Value)> body) {
  int64_t whole = columns / lanes * lanes;
  loop(0, whole, lanes, [&](Value column) { body(column, Value()); });
  if (whole < columns)
    body(index(whole), maskBelow(index(columns - whole), lanes));
}

func::FuncOp AttentionBuilder::getFunction(StringRef name, ArrayRef<Type> arguments,
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
