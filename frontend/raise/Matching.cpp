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

static void addFactors(Value value, bool isRoot, Product& product) {
  if (std::optional<double> constant = splatOf(value)) {
    product.constant *= *constant;
    return;
  }
  Operation* op = value.getDefiningOp();
  if (op && (isRoot || value.hasOneUse())) {
    if (auto mul = dyn_cast<ir::MulOp>(op)) {
      addFactors(mul.getLhs(), false, product);
      // x * x has one value with two uses: it is not looked into.
      addFactors(mul.getRhs(), false, product);
      return;
    }
    if (auto div = dyn_cast<ir::DivOp>(op))
      if (std::optional<double> divisor = splatOf(div.getRhs())) {
        product.constant /= *divisor;
        addFactors(div.getLhs(), false, product);
        return;
      }
  }
  product.factors.push_back(value);
}

Product productOf(Value root) {
  Product product;
  addFactors(root, /*isRoot=*/true, product);
  return product;
}

} // namespace titan::frontend
