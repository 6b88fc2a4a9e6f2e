#include "compiler/Codegen/cpu/GemmBuilder.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;

namespace titan::codegen {

GemmBuilder::GemmBuilder(OpBuilder& builder, Location loc, int64_t width)
    : builder(builder), loc(loc), width(width), f32(builder.getF32Type()),
      bf16(builder.getBF16Type()), i32(builder.getI32Type()), i16(builder.getI16Type()) {}

Value GemmBuilder::constant(int64_t value) {
  return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
}
Value GemmBuilder::add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
Value GemmBuilder::sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
Value GemmBuilder::mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
Value GemmBuilder::divide(Value a, int64_t b) {
  return arith::DivUIOp::create(builder, loc, a, constant(b));
}
Value GemmBuilder::divideCeil(Value a, Value b) {
  return arith::DivUIOp::create(builder, loc, sub(add(a, b), constant(1)), b);
}
Value GemmBuilder::remainder(Value a, int64_t b) {
  return arith::RemUIOp::create(builder, loc, a, constant(b));
}
Value GemmBuilder::smaller(Value a, Value b) { return arith::MinUIOp::create(builder, loc, a, b); }
Value GemmBuilder::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, predicate, a, b);
}

Value GemmBuilder::at(Value pointer, Value index, Type type) {
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), type, pointer, LLVM::GEPArg(index));
}
unsigned GemmBuilder::alignmentOf(Type type) const {
  return getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
}
Value GemmBuilder::load(Type type, Value pointer) {
  return LLVM::LoadOp::create(builder, loc, type, pointer, alignmentOf(type));
}
Value GemmBuilder::loadMasked(VectorType type, Value pointer, Value mask) {
  return LLVM::MaskedLoadOp::create(builder, loc, type, pointer, mask, zero(type),
                                    builder.getI32IntegerAttr(alignmentOf(type)), UnitAttr());
}
void GemmBuilder::store(Value value, Value pointer) {
  LLVM::StoreOp::create(builder, loc, value, pointer, alignmentOf(value.getType()));
}
void GemmBuilder::storeMasked(Value value, Value pointer, Value mask) {
  LLVM::MaskedStoreOp::create(builder, loc, value, pointer, mask, alignmentOf(value.getType()));
}
void GemmBuilder::prefetch(Value pointer) {
  constexpr int write = 1, keep = 3, data = 1;
  LLVM::Prefetch::create(builder, loc, pointer, builder.getI32IntegerAttr(write),
                         builder.getI32IntegerAttr(keep), builder.getI32IntegerAttr(data));
}
void GemmBuilder::prefetchToRead(Value pointer) {
  constexpr int read = 0, secondLevel = 2, data = 1;
  LLVM::Prefetch::create(builder, loc, pointer, builder.getI32IntegerAttr(read),
                         builder.getI32IntegerAttr(secondLevel), builder.getI32IntegerAttr(data));
}
Value GemmBuilder::zero(Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
}
Value GemmBuilder::broadcast(Value scalar, int64_t lanes) {
  return vector::BroadcastOp::create(builder, loc, VectorType::get({lanes}, scalar.getType()),
                                     scalar);
}

Value GemmBuilder::maskBelow(Value count, int64_t first) {
  SmallVector<int64_t> lanes(width);
  std::iota(lanes.begin(), lanes.end(), first);
  Value numbers = arith::ConstantOp::create(builder, loc, builder.getI64VectorAttr(lanes));
  return compare(arith::CmpIPredicate::slt, numbers, broadcast(count, width));
}

Value GemmBuilder::pair(Value low, Value high) {
  Type type = i32;
  Value shift = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(16));
  if (auto vector = dyn_cast<VectorType>(low.getType())) {
    type = VectorType::get(vector.getShape(), i32);
    shift = broadcast(shift, vector.getNumElements());
  }
  Value wideLow = arith::ExtUIOp::create(builder, loc, type, low);
  Value wideHigh = arith::ExtUIOp::create(builder, loc, type, high);
  return arith::OrIOp::create(builder, loc, wideLow,
                              arith::ShLIOp::create(builder, loc, wideHigh, shift));
}

void GemmBuilder::loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body) {
  auto toIndex = [&](Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  };
  emitLoop(builder, loc, toIndex(low), toIndex(high), step, {}, [&](Value induction, ValueRange) {
    body(arith::IndexCastOp::create(builder, loc, builder.getI64Type(), induction));
    return SmallVector<Value>();
  });
}

func::FuncOp getSharedFunction(OpBuilder& builder, Location loc, StringRef name,
                               ArrayRef<Type> arguments, llvm::function_ref<void(Block&)> emit) {
  Operation* parent = builder.getInsertionBlock()->getParentOp();
  auto module =
      isa<ModuleOp>(parent) ? cast<ModuleOp>(parent) : parent->getParentOfType<ModuleOp>();
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
