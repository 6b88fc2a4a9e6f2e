#include "frontend/onnx/IndexRanges.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace titan::frontend {
namespace {

Range joined(Range a, Range b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

/// From the least to the largest of `numbers`; of an infinite one times 0, unbounded.
Range spanned(std::initializer_list<double> numbers) {
  if (std::ranges::any_of(numbers, [](double number) { return std::isnan(number); }))
    return {};
  return {std::ranges::min(numbers), std::ranges::max(numbers)};
}

Range product(Range a, Range b) {
  return spanned({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
}

/// By a positive number: towards zero or down, an integer stays within.
Range quotient(Range a, Range b) {
  if (b.low <= 0)
    return {};
  Range all = spanned({a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
  return {std::floor(all.low), std::ceil(all.high)};
}

/// By a positive integer, with the sign of the dividend.
Range remainder(Range a, Range b) {
  if (b.low <= 0)
    return {};
  return {a.low >= 0 ? 0 : 1 - b.high, std::min(std::max(a.high, 0.0), b.high - 1)};
}

Range elementsOf(ir::ConstantOp constant) {
  auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
  if (!elements || elements.empty())
    return {};
  const bool isTruth = elements.getElementType().isInteger(1);
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const APInt& element : elements.getValues<APInt>()) {
    const auto number =
        static_cast<double>(isTruth ? element.getZExtValue() : element.getSExtValue());
    range = joined(range, {number, number});
  }
  return range;
}

bool movesOnly(Operation* op) {
  return isa<ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReverseOp,
             ir::DetachOp, ir::ConvertOp>(op);
}

/// An index that counts from the end where it is negative: x < 0 ? x + n : x.
bool countsFromFront(ir::SelectOp select) {
  auto compare = select.getCondition().getDefiningOp<ir::CompareOp>();
  return compare && compare.getPredicate() == ir::ComparePredicate::LT &&
         compare.getLhs() == select.getOnFalse();
}

/// The y of x - x / y * y; null: `value` is no remainder.
Value divisorOf(Value value) {
  auto rest = value.getDefiningOp<ir::SubOp>();
  auto whole = rest ? rest.getRhs().getDefiningOp<ir::MulOp>() : nullptr;
  auto quotient = whole ? whole.getLhs().getDefiningOp<ir::DivOp>() : nullptr;
  const bool isRest = quotient && quotient.getLhs() == rest.getLhs() &&
                      quotient.getRhs() == whole.getRhs() &&
                      !isa<FloatType>(ir::tensorType(value).getElementType());
  return isRest ? quotient.getRhs() : Value();
}

/// The y of a remainder that has y added where its sign is the other.
Value modulusOf(ir::SelectOp select) {
  auto moved = select.getOnTrue().getDefiningOp<ir::AddOp>();
  Value divisor = divisorOf(select.getOnFalse());
  return moved && moved.getLhs() == select.getOnFalse() && moved.getRhs() == divisor ? divisor
                                                                                     : Value();
}

} // namespace

Range IndexRanges::rangeOf(Operation* op) const {
  const auto operand = [&](unsigned i) { return of(op->getOperand(i)); };
  const auto resultType = ir::tensorType(op->getResult(0));
  if (resultType.getElementType().isInteger(1))
    return {0, 1};
  if (movesOnly(op))
    return operand(0);
  return llvm::TypeSwitch<Operation*, Range>(op)
      .Case<ir::ConstantOp>([](ir::ConstantOp constant) { return elementsOf(constant); })
      .Case<ir::IotaOp>([&](ir::IotaOp iota) {
        return Range{0, static_cast<double>(resultType.getDimSize(iota.getDim()) - 1)};
      })
      .Case<ir::ArgmaxOp>([&](ir::ArgmaxOp argmax) {
        const auto searched = ir::tensorType(argmax.getOperand());
        return Range{0, static_cast<double>(searched.getDimSize(argmax.getDim()) - 1)};
      })
      .Case<ir::AddOp>([&](auto) {
        return Range{operand(0).low + operand(1).low, operand(0).high + operand(1).high};
      })
      .Case<ir::SubOp>([&](ir::SubOp difference) {
        if (Value divisor = divisorOf(difference))
          return remainder(of(difference.getLhs()), of(divisor));
        return Range{operand(0).low - operand(1).high, operand(0).high - operand(1).low};
      })
      .Case<ir::NegOp>([&](auto) { return Range{-operand(0).high, -operand(0).low}; })
      .Case<ir::MulOp>([&](auto) { return product(operand(0), operand(1)); })
      .Case<ir::DivOp>([&](auto) { return quotient(operand(0), operand(1)); })
      .Case<ir::MaxOp>([&](auto) {
        return Range{std::max(operand(0).low, operand(1).low),
                     std::max(operand(0).high, operand(1).high)};
      })
      .Case<ir::MinOp>([&](auto) {
        return Range{std::min(operand(0).low, operand(1).low),
                     std::min(operand(0).high, operand(1).high)};
      })
      .Case<ir::SelectOp>([&](ir::SelectOp select) {
        if (Value modulus = modulusOf(select); modulus && of(modulus).low > 0)
          return Range{0, of(modulus).high - 1};
        const bool isCounted = countsFromFront(select) && operand(2).low >= 0;
        return isCounted ? operand(2) : joined(operand(1), operand(2));
      })
      .Case<ir::ConcatOp>([&](ir::ConcatOp join) {
        Range range = operand(0);
        for (Value input : join.getInputs().drop_front())
          range = joined(range, of(input));
        return range;
      })
      .Case<ir::PadOp>([&](ir::PadOp pad) {
        const double value = pad.getValue().convertToDouble();
        return joined(operand(0), {value, value});
      })
      .Case<ir::EmbeddingOp, ir::GatherOp>([&](auto) { return operand(0); })
      .Case<ir::ReduceOp>([&](ir::ReduceOp reduce) {
        if (reduce.getKind() == ir::ReduceKind::Max || reduce.getKind() == ir::ReduceKind::Min)
          return operand(0);
        if (reduce.getKind() != ir::ReduceKind::Sum)
          return Range();
        const auto terms =
            static_cast<double>(ir::tensorType(reduce.getOperand()).getNumElements() /
                                std::max<int64_t>(1, resultType.getNumElements()));
        return product(operand(0), {terms, terms});
      })
      .Case<ir::SigmoidOp>([](auto) { return Range{0, 1}; })
      .Case<ir::FloorOp, ir::CeilOp, ir::RoundOp>(
          [&](auto) { return Range{std::floor(operand(0).low), std::ceil(operand(0).high)}; })
      .Default([](Operation*) { return Range(); });
}

void IndexRanges::visit(Operation* op) {
  if (auto best = dyn_cast<ir::TopKOp>(op)) {
    known_[best.getValues()] = of(best.getOperand());
    const auto searched = ir::tensorType(best.getOperand());
    known_[best.getIndices()] = {0, static_cast<double>(searched.getShape().back() - 1)};
  } else if (op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType())) {
    known_[op->getResult(0)] = rangeOf(op);
  }
}

bool IndexRanges::isData(Value value) const {
  while (Operation* op = value.getDefiningOp()) {
    auto select = dyn_cast<ir::SelectOp>(op);
    const bool isCounted = select && countsFromFront(select);
    if (!isCounted && !movesOnly(op))
      return false;
    value = isCounted ? select.getOnFalse() : op->getOperand(0);
    if (isa<FloatType>(ir::tensorType(value).getElementType()))
      return false;
  }
  return true;
}

} // namespace titan::frontend
