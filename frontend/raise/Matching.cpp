#include "frontend/raise/Matching.h"

#include "frontend/Decimal.h"

#include <cmath>

using namespace mlir;

namespace titan::frontend {

Value throughBroadcast(Value value) {
  while (Operation* op = value.getDefiningOp()) {
    if (!isa<ir::BroadcastOp, ir::ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

std::optional<double> splatOf(Value value) {
  auto constant = throughBroadcast(value).getDefiningOp<ir::ConstantOp>();
  auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  if (!splat || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  bool losesInfo;
  APFloat number = splat.getSplatValue<APFloat>();
  if (splat.getElementType().isF32())
    return asWritten(number.convertToFloat());
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

bool isClose(double value, double expected) {
  return std::abs(value - expected) <= 1e-5 * std::abs(expected);
}

Product productOf(Value root) {
  // A model's chain of products may be of any length; patterns ask for a handful of factors.
  constexpr size_t kMostFactors = 64;
  Product product;
  SmallVector<Value> open = {root}; // the next one last
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (std::optional<double> constant = splatOf(value)) {
      product.constant *= *constant;
      continue;
    }
    Operation* op = value.getDefiningOp();
    bool looksInto =
        (value == root || value.hasOneUse()) && product.factors.size() + open.size() < kMostFactors;
    auto mul = looksInto ? dyn_cast_if_present<ir::MulOp>(op) : ir::MulOp();
    auto div = looksInto ? dyn_cast_if_present<ir::DivOp>(op) : ir::DivOp();
    std::optional<double> divisor = div ? splatOf(div.getRhs()) : std::nullopt;
    if (mul) {
      // x * x has one value with two uses: it is not looked into.
      open.append({mul.getRhs(), mul.getLhs()});
    } else if (divisor) {
      product.constant /= *divisor;
      open.push_back(div.getLhs());
    } else {
      product.factors.push_back(value);
    }
  }
  return product;
}

} // namespace titan::frontend
