#include "compiler/Codegen/kernel/LaneAnalysis.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace titan::codegen {
namespace {

std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getSExtValue();
  return std::nullopt;
}

} // namespace

std::optional<int64_t> coefficientAlong(const LoopNest& nest, Value value, unsigned dim) {
  if (!contains(nest.dependence(value), dim))
    return 0;
  Operation* definition = value.getDefiningOp();
  if (isa_and_nonnull<kernel::IndexOp>(definition))
    return 1;
  if (auto add = dyn_cast_or_null<arith::AddIOp>(definition)) {
    auto a = coefficientAlong(nest, add.getLhs(), dim),
         b = coefficientAlong(nest, add.getRhs(), dim);
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  if (auto mul = dyn_cast_or_null<arith::MulIOp>(definition)) {
    for (auto [factor, other] :
         {std::pair(mul.getLhs(), mul.getRhs()), std::pair(mul.getRhs(), mul.getLhs())})
      if (auto constant = constantOf(factor))
        if (auto coefficient = coefficientAlong(nest, other, dim))
          return *constant * *coefficient;
  }
  return std::nullopt;
}

bool isMultipleOf8(const LoopNest& nest, Value value, unsigned dim) {
  if (auto constant = constantOf(value))
    return *constant % 8 == 0;
  Operation* definition = value.getDefiningOp();
  if (auto index = dyn_cast_or_null<kernel::IndexOp>(definition))
    return !nest.dimOf(index) || *nest.dimOf(index) == dim;
  if (auto add = dyn_cast_or_null<arith::AddIOp>(definition))
    return isMultipleOf8(nest, add.getLhs(), dim) && isMultipleOf8(nest, add.getRhs(), dim);
  if (auto mul = dyn_cast_or_null<arith::MulIOp>(definition))
    return isMultipleOf8(nest, mul.getLhs(), dim) || isMultipleOf8(nest, mul.getRhs(), dim);
  return false;
}

} // namespace titan::codegen
