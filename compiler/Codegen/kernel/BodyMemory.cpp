// Loads and stores of BodyEmitter: where an element lies; the access itself is the target's.
#include "compiler/Codegen/kernel/BodyEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace titan::codegen {

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

ElementRun BodyEmitter::runOf(const Memory& memory) {
  const int64_t stride = laneStride(memory);
  Type stored = storedType(memory.access.element);
  ElementRun run{memory, elementPointer(memory, stored), stored, 0, 1, 0, Value()};
  if (stride != 0) {
    run.length = scope->lanes->length;
    run.stride = stride;
    run.dim = scope->lanes->dim;
    run.mask = scope->lanes->mask;
  }
  return run;
}

Value BodyEmitter::load(const Memory& memory) {
  Value loaded = access.load(builder, loc, runOf(memory));
  if (storedType(memory.access.element) == memory.access.element)
    return loaded;
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(loaded.getType()));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, loaded, zero);
}

void BodyEmitter::store(const Memory& memory, Value value) {
  Type element = memory.access.element, stored = storedType(element);
  if (laneStride(memory) != 0 && !isa<VectorType>(value.getType()))
    value = splat(value, element);
  if (stored != element) {
    Type wide = stored;
    if (auto vector = dyn_cast<VectorType>(value.getType()))
      wide = vector.clone(stored);
    value = arith::ExtUIOp::create(builder, loc, wide, value);
  }
  access.store(builder, loc, runOf(memory), value);
}

} // namespace titan::codegen
