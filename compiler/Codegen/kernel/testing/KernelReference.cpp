#include "compiler/Codegen/kernel/testing/KernelReference.h"

#include "runtime/program/Random.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace titan::codegen::testing {
namespace {

/// Every value of the body as an array over the whole space, row-major.
class Evaluation {
public:
  Evaluation(kernel::FusedOp op, std::span<const Elements> ins, std::span<const int64_t> scalars)
      : op(op), space(op.getSpace()) {
    for (int64_t extent : space)
      points *= extent;
    for (BlockArgument argument : op.getBlock().getArguments()) {
      unsigned i = argument.getArgNumber();
      Elements& array = arrays[argument];
      array.resize(points);
      for (int64_t point = 0; point < points; ++point)
        array[point] = i < ins.size() ? ins[i][position(op.getInMap(i), op.getIns()[i], point)]
                                      : static_cast<double>(scalars[i - ins.size()]);
    }
    for (Operation& inner : op.getBlock().without_terminator())
      evaluate(&inner);
  }

  void write(std::vector<Elements>& outs) {
    auto yield = cast<kernel::YieldOp>(op.getBlock().getTerminator());
    for (auto [j, value] : llvm::enumerate(yield.getValues()))
      for (int64_t point = 0; point < points; ++point)
        outs[j][position(op.getOutMap(j), op.getOuts()[j], point)] = arrays[value][point];
  }

private:
  SmallVector<int64_t> coordinates(int64_t point) const {
    SmallVector<int64_t> result(space.size());
    for (int64_t d = static_cast<int64_t>(space.size()) - 1; d >= 0; --d) {
      result[d] = point % space[d];
      point /= space[d];
    }
    return result;
  }

  int64_t position(AffineMap map, Value buffer, int64_t point) const {
    SmallVector<int64_t> indices = map.compose(coordinates(point));
    int64_t linear = 0;
    for (auto [index, extent] :
         llvm::zip_equal(indices, cast<ShapedType>(buffer.getType()).getShape()))
      linear = linear * extent + index;
    return linear;
  }

  void reduce(kernel::ReduceOp reduce) {
    const Elements& from = arrays[reduce.getValue()];
    std::map<SmallVector<int64_t>, double> sums;
    auto kept = [&](int64_t point) {
      SmallVector<int64_t> key = coordinates(point);
      for (int64_t dim : reduce.getDims())
        key[dim] = 0;
      return key;
    };
    for (int64_t point = 0; point < points; ++point) {
      auto [slot, fresh] = sums.try_emplace(kept(point), from[point]);
      double& sum = slot->second;
      if (fresh)
        continue;
      switch (reduce.getKind()) {
      case kernel::ReduceKind::Add:
        sum += from[point];
        break;
      case kernel::ReduceKind::Mul:
        sum *= from[point];
        break;
      case kernel::ReduceKind::Max:
        sum = std::isnan(sum) || std::isnan(from[point]) ? NAN : std::max(sum, from[point]);
        break;
      case kernel::ReduceKind::Min:
        sum = std::isnan(sum) || std::isnan(from[point]) ? NAN : std::min(sum, from[point]);
        break;
      }
    }
    Elements to(points);
    for (int64_t point = 0; point < points; ++point)
      to[point] = sums[kept(point)];
    arrays[reduce.getResult()] = std::move(to);
  }

  void evaluate(Operation* inner) {
    if (auto reduceOp = dyn_cast<kernel::ReduceOp>(inner))
      return reduce(reduceOp);
    Elements result(points);
    for (int64_t point = 0; point < points; ++point) {
      SmallVector<double> in;
      for (Value operand : inner->getOperands())
        in.push_back(arrays[operand][point]);
      result[point] = apply(inner, in, point);
    }
    arrays[inner->getResult(0)] = std::move(result);
  }

  static double compare(arith::CmpFPredicate predicate, double x, double y) {
    switch (predicate) {
    case arith::CmpFPredicate::OGT:
      return double(x > y);
    case arith::CmpFPredicate::OLT:
      return double(x < y);
    default:
      return std::numeric_limits<double>::quiet_NaN();
    }
  }

  /// Of numbers that are not negative where the predicate is of unsigned ones.
  static double compare(arith::CmpIPredicate predicate, double x, double y) {
    switch (predicate) {
    case arith::CmpIPredicate::eq:
      return double(x == y);
    case arith::CmpIPredicate::slt:
    case arith::CmpIPredicate::ult:
      return double(x < y);
    default:
      return std::numeric_limits<double>::quiet_NaN();
    }
  }

  double apply(Operation* inner, ArrayRef<double> in, int64_t point) const {
    return TypeSwitch<Operation*, double>(inner)
        .Case([&](arith::ConstantOp op) {
          if (auto value = dyn_cast<FloatAttr>(op.getValue()))
            return value.getValueAsDouble();
          auto value = cast<IntegerAttr>(op.getValue()).getValue();
          return static_cast<double>(value.getBitWidth() == 1 ? value.getZExtValue()
                                                              : value.getSExtValue());
        })
        .Case([&](kernel::IndexOp op) {
          return static_cast<double>(coordinates(point)[op.getDim()]);
        })
        .Case([&](kernel::RandomHalfOp op) {
          uint64_t key = randomKey(static_cast<int64_t>(in[0]), op.getStream());
          auto element =
              static_cast<uint64_t>(in[2]) + (op.getBase() ? static_cast<uint64_t>(in[3]) : 0);
          uint32_t word = philox4x32_7(key, element / 8, in[1])[element % 8 / 2];
          return static_cast<double>(element % 2 ? word >> 16 : word & 0xffff);
        })
        .Case<arith::AddFOp, arith::AddIOp>([&](auto) { return in[0] + in[1]; })
        .Case<arith::SubFOp, arith::SubIOp>([&](auto) { return in[0] - in[1]; })
        .Case<arith::MulFOp, arith::MulIOp>([&](auto) { return in[0] * in[1]; })
        .Case([&](arith::DivFOp) { return in[0] / in[1]; })
        .Case([&](arith::DivSIOp) { return std::trunc(in[0] / in[1]); })
        .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>(
            [&](auto) { return std::ceil(in[0] / in[1]); })
        .Case([&](arith::FloorDivSIOp) { return std::floor(in[0] / in[1]); })
        .Case([&](arith::RemFOp) { return std::fmod(in[0], in[1]); })
        .Case([&](arith::RemSIOp) { return std::fmod(in[0], in[1]); })
        .Case([&](arith::MaximumFOp) { return std::max(in[0], in[1]); })
        .Case([&](arith::CmpFOp op) { return compare(op.getPredicate(), in[0], in[1]); })
        .Case([&](arith::CmpIOp op) { return compare(op.getPredicate(), in[0], in[1]); })
        .Case([&](arith::SelectOp) { return in[0] != 0 ? in[1] : in[2]; })
        .Case<arith::IndexCastOp, arith::ExtFOp, arith::TruncFOp, arith::UIToFPOp, arith::SIToFPOp,
              arith::ExtUIOp>([&](auto) { return in[0]; })
        .Case([&](math::ExpOp) { return std::exp(in[0]); })
        .Case([&](math::ExpM1Op) { return std::expm1(in[0]); })
        .Case([&](math::LogOp) { return std::log(in[0]); })
        .Case([&](math::Log1pOp) { return std::log1p(in[0]); })
        .Case([&](math::AtanOp) { return std::atan(in[0]); })
        .Case([&](math::TanhOp) { return std::tanh(in[0]); })
        .Case([&](math::ErfOp) { return std::erf(in[0]); })
        .Case([&](math::SqrtOp) { return std::sqrt(in[0]); })
        .Case([&](math::SinOp) { return std::sin(in[0]); })
        .Case([&](math::CosOp) { return std::cos(in[0]); })
        .Case([&](math::PowFOp) { return std::pow(in[0], in[1]); })
        .Case([&](math::FmaOp) { return std::fma(in[0], in[1], in[2]); })
        .Default([](Operation*) { return std::numeric_limits<double>::quiet_NaN(); });
  }

  kernel::FusedOp op;
  ArrayRef<int64_t> space;
  int64_t points = 1;
  llvm::DenseMap<Value, Elements> arrays;
};

} // namespace

std::vector<Elements> evaluateFused(kernel::FusedOp op, std::span<const Elements> ins,
                                    std::vector<Elements> outs, std::span<const int64_t> scalars) {
  Evaluation(op, ins, scalars).write(outs);
  return outs;
}

} // namespace titan::codegen::testing
