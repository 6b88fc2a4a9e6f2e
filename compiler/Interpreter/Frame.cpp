#include "compiler/Interpreter/Frame.h"

#include "dialects/Titan/Titan.h"
#include "runtime/program/DType.h"

using namespace mlir;

namespace titan::interpreter {

namespace {

/// Wraps to the width of `type`, sign- or zero-extended as its signedness says. i1 is 0 or 1.
int64_t wrap(int64_t value, IntegerType type) {
  unsigned width = type.getWidth();
  if (width >= 64)
    return value;
  auto bits = static_cast<uint64_t>(value) << (64 - width);
  if (width == 1 || type.isUnsigned())
    return static_cast<int64_t>(bits >> (64 - width));
  return static_cast<int64_t>(bits) >> (64 - width);
}

} // namespace

const Tensor& Frame::get(Value value) const {
  auto found = values_.find(value);
  assert(found != values_.end() && "a value is read before it is set");
  return found->second;
}

double roundTo(Type element, double number, Engine engine) {
  if (engine == Engine::F64 || element.isF64())
    return number;
  auto single = static_cast<float>(number);
  if (element.isBF16())
    return fromBFloat16(toBFloat16(single));
  if (element.isF16())
    return fromFloat16(toFloat16(single));
  return single;
}

void Frame::set(Value value, Tensor tensor) {
  Type element = getElementTypeOrSelf(value.getType());
  if (auto integer = dyn_cast<IntegerType>(element)) {
    if (integer.getWidth() < 64)
      for (int64_t& x : tensor.mutableIntegers())
        x = wrap(x, integer);
  } else if (isa<FloatType>(element) && engine_ == Engine::F32 && !element.isF64()) {
    if (element.isF32())
      for (double& x : tensor.mutableFloats())
        x = static_cast<float>(x);
    else
      for (double& x : tensor.mutableFloats())
        x = round(x, element);
  }
  setExact(value, std::move(tensor));
}

LogicalResult Frame::run(Block& block) {
  for (Operation& op : block.without_terminator()) {
    auto interpretable = dyn_cast<ir::InterpretableOpInterface>(op);
    if (!interpretable)
      return op.emitOpError("has no meaning in the interpreter");
    if (failed(interpretable.interpret(*this)))
      return failure();
  }
  return success();
}

} // namespace titan::interpreter
