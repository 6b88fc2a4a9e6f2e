#include "frontend/raise/Evaluate.h"

#include "dialects/Titan/TensorBuilder.h"
#include "frontend/Strides.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <functional>

using namespace mlir;

namespace titan::frontend {

namespace {

using Known = std::shared_ptr<const Elements>;

bool isEvaluated(Type type) {
  return type.isF32() || type.isF64() || type.isF16() || type.isBF16() || type.isInteger(1) ||
         type.isInteger(32) || type.isInteger(64);
}

double roundTo(Type type, double value) {
  if (type.isF32())
    return static_cast<double>(static_cast<float>(value));
  if (type.isF16() || type.isBF16()) {
    bool losesInfo;
    APFloat number(value);
    number.convert(cast<FloatType>(type).getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return number.convertToDouble();
  }
  if (type.isInteger(1))
    return value != 0 ? 1 : 0;
  if (isa<IntegerType>(type))
    return std::trunc(value);
  return value;
}

Known fromAttribute(Attribute attribute) {
  auto dense = dyn_cast_if_present<DenseElementsAttr>(attribute);
  if (!dense || !isEvaluated(dense.getElementType()))
    return {};
  auto result = std::make_shared<Elements>();
  result->shape.assign(dense.getType().getShape().begin(), dense.getType().getShape().end());
  result->data.reserve(dense.getNumElements());
  if (isa<FloatType>(dense.getElementType())) {
    for (const APFloat& element : dense.getValues<APFloat>())
      result->data.push_back(dense.getElementType().isF32()
                                 ? static_cast<double>(element.convertToFloat())
                                 : element.convertToDouble());
  } else {
    bool isBool = dense.getElementType().isInteger(1);
    for (const APInt& element : dense.getValues<APInt>()) {
      auto value = isBool ? static_cast<int64_t>(element.getZExtValue()) : element.getSExtValue();
      // Beyond 2^53 doubles have gaps.
      if (std::abs(static_cast<double>(value)) > 9e15)
        return {};
      result->data.push_back(static_cast<double>(value));
    }
  }
  return result;
}

/// Elements of `operand` picked by strides into a tensor of `shape`.
Known pick(const Elements& operand, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
           int64_t base) {
  auto result = std::make_shared<Elements>();
  result->shape.assign(shape.begin(), shape.end());
  result->data.resize(ShapedType::getNumElements(shape));
  forEachPosition(shape, base, strides,
                  [&](int64_t i, int64_t source) { result->data[i] = operand.data[source]; });
  return result;
}

bool holds(ir::ComparePredicate predicate, double a, double b) {
  switch (predicate) {
  case ir::ComparePredicate::EQ:
    return a == b;
  case ir::ComparePredicate::NE:
    return a != b;
  case ir::ComparePredicate::LT:
    return a < b;
  case ir::ComparePredicate::LE:
    return a <= b;
  case ir::ComparePredicate::GT:
    return a > b;
  case ir::ComparePredicate::GE:
    return a >= b;
  }
  return false;
}

/// What an elementwise op computes of one element of each operand; null: not known here.
std::function<double(ArrayRef<double>)> elementwise(Operation* op) {
  using Args = ArrayRef<double>;
  using Function = std::function<double(Args)>;
  bool isInteger = !op->getOperands().empty() &&
                   !isa<FloatType>(ir::tensorType(op->getOperand(0)).getElementType());
  return llvm::TypeSwitch<Operation*, Function>(op)
      .Case<ir::AddOp>([](auto) { return [](Args x) { return x[0] + x[1]; }; })
      .Case<ir::SubOp>([](auto) { return [](Args x) { return x[0] - x[1]; }; })
      .Case<ir::MulOp>([](auto) { return [](Args x) { return x[0] * x[1]; }; })
      .Case<ir::DivOp>([&](auto) -> Function {
        if (isInteger)
          return {};
        return [](Args x) { return x[0] / x[1]; };
      })
      .Case<ir::MaxOp>([](auto) { return [](Args x) { return std::max(x[0], x[1]); }; })
      .Case<ir::MinOp>([](auto) { return [](Args x) { return std::min(x[0], x[1]); }; })
      .Case<ir::PowOp>([](auto) { return [](Args x) { return std::pow(x[0], x[1]); }; })
      .Case<ir::AndOp>([](auto) { return [](Args x) { return x[0] != 0 && x[1] != 0; }; })
      .Case<ir::OrOp>([](auto) { return [](Args x) { return x[0] != 0 || x[1] != 0; }; })
      .Case<ir::NotOp>([](auto) { return [](Args x) { return x[0] == 0; }; })
      .Case<ir::NegOp>([](auto) { return [](Args x) { return -x[0]; }; })
      .Case<ir::AbsOp>([](auto) { return [](Args x) { return std::abs(x[0]); }; })
      .Case<ir::ExpOp>([](auto) { return [](Args x) { return std::exp(x[0]); }; })
      .Case<ir::LogOp>([](auto) { return [](Args x) { return std::log(x[0]); }; })
      .Case<ir::SqrtOp>([](auto) { return [](Args x) { return std::sqrt(x[0]); }; })
      .Case<ir::SinOp>([](auto) { return [](Args x) { return std::sin(x[0]); }; })
      .Case<ir::CosOp>([](auto) { return [](Args x) { return std::cos(x[0]); }; })
      .Case<ir::ConvertOp>([](auto) { return [](Args x) { return x[0]; }; })
      .Case<ir::SelectOp>([](auto) { return [](Args x) { return x[0] != 0 ? x[1] : x[2]; }; })
      .Case<ir::CompareOp>([](ir::CompareOp compare) {
        return [predicate = compare.getPredicate()](Args x) {
          return holds(predicate, x[0], x[1]) ? 1.0 : 0.0;
        };
      })
      .Default([](Operation*) { return Function(); });
}

Known contract(ir::ContractOp op, const Elements& lhs, const Elements& rhs, int64_t largest) {
  if (op.getAcc())
    return {};
  // The result's dimensions, then the contracted ones, as strides into both operands.
  std::vector<int64_t> left = rowMajorStrides(lhs.shape), right = rowMajorStrides(rhs.shape);
  SmallVector<int64_t> shape, leftStrides, rightStrides;
  auto addDim = [&](int64_t extent, int64_t l, int64_t r) {
    shape.push_back(extent);
    leftStrides.push_back(l);
    rightStrides.push_back(r);
  };
  for (auto [l, r] : llvm::zip_equal(op.getLhsBatch(), op.getRhsBatch()))
    addDim(lhs.shape[l], left[l], right[r]);
  for (int64_t d : op.getLhsFree())
    addDim(lhs.shape[d], left[d], 0);
  for (int64_t d : op.getRhsFree())
    addDim(rhs.shape[d], 0, right[d]);
  auto result = std::make_shared<Elements>();
  result->shape = shape;
  result->data.assign(ShapedType::getNumElements(shape), 0);
  int64_t inner = 1;
  for (auto [l, r] : llvm::zip_equal(op.getLhsContracting(), op.getRhsContracting())) {
    addDim(lhs.shape[l], left[l], right[r]);
    inner *= lhs.shape[l];
  }
  int64_t count = ShapedType::getNumElements(shape);
  if (count > largest)
    return {};
  std::vector<int64_t> sources(count);
  forEachPosition(shape, 0, leftStrides, [&](int64_t i, int64_t source) { sources[i] = source; });
  forEachPosition(shape, 0, rightStrides, [&](int64_t i, int64_t source) {
    result->data[i / inner] += lhs.data[sources[i]] * rhs.data[source];
  });
  return result;
}

Known concat(ir::ConcatOp op, ArrayRef<Known> operands) {
  auto result = std::make_shared<Elements>();
  ArrayRef<int64_t> shape = ir::tensorType(op.getResult()).getShape();
  result->shape.assign(shape.begin(), shape.end());
  result->data.resize(ShapedType::getNumElements(shape));
  std::vector<int64_t> strides = rowMajorStrides(shape);
  int64_t offset = 0;
  for (const Known& operand : operands) {
    forEachPosition(operand->shape, offset * strides[op.getDim()], strides,
                    [&](int64_t i, int64_t target) { result->data[target] = operand->data[i]; });
    offset += operand->shape[op.getDim()];
  }
  return result;
}

Known apply(Operation* op, RankedTensorType type, ArrayRef<Known> operands, int64_t largest) {
  ArrayRef<int64_t> shape = type.getShape();
  return llvm::TypeSwitch<Operation*, Known>(op)
      .Case<ir::ReshapeOp>([&](auto) {
        auto result = std::make_shared<Elements>(*operands[0]);
        result->shape.assign(shape.begin(), shape.end());
        return result;
      })
      .Case<ir::TransposeOp>([&](ir::TransposeOp transpose) {
        std::vector<int64_t> from = rowMajorStrides(operands[0]->shape);
        SmallVector<int64_t> strides;
        for (int64_t d : transpose.getPermutation())
          strides.push_back(from[d]);
        return pick(*operands[0], shape, strides, 0);
      })
      .Case<ir::BroadcastOp>([&](ir::BroadcastOp broadcast) {
        std::vector<int64_t> from = rowMajorStrides(operands[0]->shape);
        SmallVector<int64_t> strides(shape.size(), 0);
        for (auto [i, d] : llvm::enumerate(broadcast.getDims()))
          strides[d] = from[i];
        return pick(*operands[0], shape, strides, 0);
      })
      .Case<ir::SliceOp>([&](ir::SliceOp slice) {
        std::vector<int64_t> from = rowMajorStrides(operands[0]->shape);
        SmallVector<int64_t> strides;
        int64_t base = 0;
        for (size_t d = 0; d < shape.size(); ++d) {
          strides.push_back(from[d] * slice.getStrides()[d]);
          base += from[d] * slice.getOffsets()[d];
        }
        return pick(*operands[0], shape, strides, base);
      })
      .Case<ir::ReverseOp>([&](ir::ReverseOp reverse) {
        std::vector<int64_t> from = rowMajorStrides(operands[0]->shape);
        SmallVector<int64_t> strides(from.begin(), from.end());
        int64_t base = 0;
        for (int64_t d : reverse.getDims()) {
          base += from[d] * (shape[d] - 1);
          strides[d] = -from[d];
        }
        return pick(*operands[0], shape, strides, base);
      })
      .Case<ir::ConcatOp>([&](ir::ConcatOp op) { return concat(op, operands); })
      .Case<ir::ContractOp>(
          [&](ir::ContractOp op) { return contract(op, *operands[0], *operands[1], largest); })
      .Case<ir::IotaOp>([&](ir::IotaOp iota) {
        auto result = std::make_shared<Elements>();
        result->shape.assign(shape.begin(), shape.end());
        result->data.resize(ShapedType::getNumElements(shape));
        SmallVector<int64_t> strides(shape.size(), 0);
        strides[iota.getDim()] = 1;
        forEachPosition(shape, 0, strides, [&](int64_t i, int64_t index) {
          result->data[i] = static_cast<double>(index);
        });
        return result;
      })
      .Default([&](Operation* op) -> Known {
        auto function = elementwise(op);
        if (!function)
          return {};
        auto result = std::make_shared<Elements>();
        result->shape.assign(shape.begin(), shape.end());
        result->data.resize(ShapedType::getNumElements(shape));
        SmallVector<double> arguments(operands.size());
        for (size_t i = 0; i < result->data.size(); ++i) {
          for (auto [k, operand] : llvm::enumerate(operands))
            arguments[k] = operand->data[i];
          result->data[i] = function(arguments);
        }
        return result;
      });
}

/// Is the meaning of `op` known here?
bool isEvaluated(Operation* op) {
  return op->getNumResults() == 1 &&
         (isa<ir::ReshapeOp, ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReverseOp,
              ir::ConcatOp, ir::ContractOp, ir::IotaOp>(op) ||
          elementwise(op));
}

} // namespace

Known Evaluator::evaluate(Value root) {
  // What waits for its operands, and which of them is next; how deep they nest is the model's
  // choice, so there is no recursion.
  SmallVector<std::pair<Value, unsigned>> open = {{root, 0}};
  while (!open.empty()) {
    auto [value, next] = open.back();
    if (known_.contains(value)) {
      open.pop_back();
      continue;
    }
    // Ops whose meaning is not known here fail before their operands cost anything.
    Operation* op = mayBeKnown(value) ? value.getDefiningOp() : nullptr;
    if (!op || !isEvaluated(op)) {
      known_[value] = leaf(value);
      continue;
    }
    if (next == op->getNumOperands()) {
      known_[value] = compute(op);
      continue;
    }
    auto operand = known_.find(op->getOperand(next));
    if (operand == known_.end())
      open.emplace_back(op->getOperand(next), 0);
    else if (operand->second)
      ++open.back().second;
    else
      known_[value] = {};
  }
  return known_.at(root);
}

bool Evaluator::mayBeKnown(Value value) const {
  RankedTensorType type = ir::tensorType(value);
  return isEvaluated(type.getElementType()) && type.getNumElements() <= largest_;
}

/// A constant, or what a buffer holds; nothing else is known without operands.
Known Evaluator::leaf(Value value) const {
  if (!mayBeKnown(value))
    return {};
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return buffers_ == Buffers::AsInFile && function
               ? fromAttribute(function.getArgAttr(argument.getArgNumber(), kInitialValue))
               : Known();
  }
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  return constant ? fromAttribute(constant.getValue()) : Known();
}

/// The result of `op`, whose operands are known.
Known Evaluator::compute(Operation* op) const {
  RankedTensorType type = ir::tensorType(op->getResult(0));
  SmallVector<Known> operands;
  for (Value operand : op->getOperands())
    operands.push_back(known_.at(operand));
  Known exact = apply(op, type, operands, largest_);
  if (!exact)
    return {};
  auto rounded = std::make_shared<Elements>(*exact);
  Type element = type.getElementType();
  for (double& number : rounded->data) {
    number = roundTo(element, number);
    if (isa<IntegerType>(element) && !(std::abs(number) <= 9e15))
      return {};
  }
  return rounded;
}

DenseElementsAttr toAttribute(const Elements& elements, RankedTensorType type) {
  Type element = type.getElementType();
  if (isa<FloatType>(element))
    return ir::denseFloats(type, elements.data);
  SmallVector<APInt> values;
  values.reserve(elements.data.size());
  for (double number : elements.data)
    values.emplace_back(element.getIntOrFloatBitWidth(),
                        static_cast<uint64_t>(static_cast<int64_t>(number)),
                        /*isSigned=*/!element.isInteger(1));
  return DenseElementsAttr::get(type, values);
}

} // namespace titan::frontend
