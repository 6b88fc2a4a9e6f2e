// Loads and stores of BodyEmitter: one element, consecutive lanes, or lanes apart.
#include "compiler/Codegen/cpu/BodyEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace titan::codegen {
namespace {

unsigned byteWidth(Type stored) { return stored.getIntOrFloatBitWidth() / 8; }

Value zeroOf(OpBuilder& builder, Location loc, Type type) {
  return arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
}

} // namespace

Type storedType(Type element) {
  return element.isInteger(1) ? IntegerType::get(element.getContext(), 8) : element;
}

int64_t BodyEmitter::laneStride(const Memory& memory) const {
  if (!scope->lanes)
    return 0;
  return memory.laneStride.value_or(memory.access.strides[scope->lanes->dim]);
}

/// The element's index as far as the coordinates of `at` and the scopes around it go; null is 0.
Value BodyEmitter::elementIndex(const Memory& memory, Scope* at) {
  if (!at)
    return memory.access.offset == 0 ? Value() : index(memory.access.offset);
  auto found = at->indices.find(&memory);
  if (found != at->indices.end())
    return found->second;
  Value sum = elementIndex(memory, at->parent);
  for (auto [dim, coordinate] : at->coordinates) {
    int64_t stride = memory.access.strides[dim];
    if (stride == 0)
      continue;
    Value term = coordinate;
    if (stride != 1)
      term = arith::MulIOp::create(builder, loc, coordinate, index(stride));
    sum = sum ? arith::AddIOp::create(builder, loc, sum, term).getResult() : term;
  }
  // What stands in an outer scope's map must stand in its block: the sum was made here, so only the
  // innermost scope may keep it.
  if (at == scope)
    at->indices[&memory] = sum;
  return sum;
}

Value BodyEmitter::elementPointer(const Memory& memory, Type stored) {
  Value position = elementIndex(memory, scope);
  if (!position)
    return memory.pointer;
  position = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), position);
  return LLVM::GEPOp::create(builder, loc, memory.pointer.getType(), stored, memory.pointer,
                             LLVM::GEPArg(position));
}

Value BodyEmitter::lanePointers(const Memory& memory, Type stored, int64_t stride) {
  int64_t length = scope->lanes->length;
  SmallVector<int64_t> steps(length);
  for (int64_t i = 0; i < length; ++i)
    steps[i] = i * stride;
  Value positions = arith::ConstantOp::create(builder, loc, builder.getI64VectorAttr(steps));
  Type pointers = VectorType::get({length}, memory.pointer.getType());
  return LLVM::GEPOp::create(builder, loc, pointers, stored, elementPointer(memory, stored),
                             LLVM::GEPArg(positions));
}

Value BodyEmitter::laneMask() {
  if (scope->lanes->mask)
    return scope->lanes->mask;
  auto type = VectorType::get({scope->lanes->length}, builder.getI1Type());
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, true));
}

Value BodyEmitter::load(const Memory& memory) {
  Type element = memory.access.element, stored = storedType(element);
  unsigned alignment = byteWidth(stored);
  int64_t stride = laneStride(memory);
  Value loaded;
  if (stride == 0) {
    loaded = LLVM::LoadOp::create(builder, loc, stored, elementPointer(memory, stored), alignment);
  } else {
    auto type = VectorType::get({scope->lanes->length}, stored);
    if (stride != 1) {
      loaded = LLVM::masked_gather::create(builder, loc, type, lanePointers(memory, stored, stride),
                                           laneMask(), ValueRange{zeroOf(builder, loc, type)},
                                           alignment);
    } else if (scope->lanes->mask) {
      loaded = LLVM::MaskedLoadOp::create(builder, loc, type, elementPointer(memory, stored),
                                          scope->lanes->mask, zeroOf(builder, loc, type),
                                          builder.getI32IntegerAttr(alignment), UnitAttr());
    } else {
      loaded = LLVM::LoadOp::create(builder, loc, type, elementPointer(memory, stored), alignment);
    }
  }
  if (stored == element)
    return loaded;
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, loaded,
                               zeroOf(builder, loc, loaded.getType()));
}

void BodyEmitter::store(const Memory& memory, Value value) {
  Type element = memory.access.element, stored = storedType(element);
  unsigned alignment = byteWidth(stored);
  int64_t stride = laneStride(memory);
  if (stride != 0 && !isa<VectorType>(value.getType()))
    value = splat(value, element);
  if (stored != element) {
    Type wide = stored;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      wide = vector.clone(stored);
    value = arith::ExtUIOp::create(builder, loc, wide, value);
  }
  if (stride != 0 && stride != 1)
    LLVM::masked_scatter::create(builder, loc, value, lanePointers(memory, stored, stride),
                                 laneMask(), alignment);
  else if (stride == 1 && scope->lanes->mask)
    LLVM::MaskedStoreOp::create(builder, loc, value, elementPointer(memory, stored),
                                scope->lanes->mask, alignment);
  else
    LLVM::StoreOp::create(builder, loc, value, elementPointer(memory, stored), alignment);
}

} // namespace titan::codegen
