// What the foreign ops are, in one file: constraints, factors, gradients, meaning, kernels.
#include "test/foreign/Foreign.h"

#include "compiler/Interpreter/Frame.h"
#include "compiler/Interpreter/Matmul.h"
#include "compiler/Lower/LoweringBuilder.h"
#include "compiler/Lower/TileGrid.h"
#include "dialects/Titan/AdjointBuilder.h"
#include "dialects/Titan/ops/OpSupport.h"
#include "dialects/Titan/ops/Random.h"
#include "mlir/IR/DialectImplementation.h"
#include "runtime/program/Random.h"
#include "llvm/ADT/TypeSwitch.h"

#include "test/foreign/ForeignDialect.cpp.inc"

using namespace mlir;
using namespace titan::ir;
using titan::interpreter::Frame;
using titan::interpreter::Tensor;
using titan::lower::Body;
using titan::lower::LoweringBuilder;

namespace titan::foreign {

void ForeignDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "test/foreign/ForeignOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "test/foreign/ForeignAttributes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// foreign.product
//===----------------------------------------------------------------------===//

std::pair<int64_t, int64_t> ProductOp::rowsAndColumns(Value matrix, bool isTransposed) {
  ArrayRef<int64_t> shape = ir::tensorType(matrix).getShape();
  return isTransposed ? std::pair(shape[1], shape[0]) : std::pair(shape[0], shape[1]);
}

void ProductOp::build(OpBuilder& builder, OperationState& state, Value a, bool transposeA, Value b,
                      bool transposeB, ArrayAttr path, PhaseAttr phase) {
  int64_t m = rowsAndColumns(a, transposeA).first, n = rowsAndColumns(b, transposeB).second;
  build(builder, state, RankedTensorType::get({m, n}, builder.getF32Type()), a, b, Value(),
        transposeA, transposeB, path, phase);
}

LogicalResult ProductOp::verify() {
  RankedTensorType a = ir::tensorType(getA()), b = ir::tensorType(getB());
  if (a.getRank() != 2 || b.getRank() != 2 || a.getElementType() != b.getElementType())
    return emitOpError("(C1) ") << a << " and " << b << " are no matrices of one element type";
  auto expected = RankedTensorType::get({m(), n()}, Float32Type::get(getContext()));
  if (rowsAndColumns(getB(), getTransposeB()).first != k() || getType() != expected ||
      (getAcc() && getAcc().getType() != expected))
    return emitOpError("(C1) ") << a << " and " << b << " do not give " << getType();
  return success();
}

ShardingRule ProductOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  int64_t rows = rule.addFactor(m(), FactorKind::Parallel),
          columns = rule.addFactor(n(), FactorKind::Parallel),
          summed = rule.addFactor(k(), getAcc() ? FactorKind::Whole : FactorKind::Reduction);
  auto dims = [](int64_t first, int64_t second, bool isTransposed) -> ShardingRule::Dims {
    if (isTransposed)
      std::swap(first, second);
    return {{first}, {second}};
  };
  rule.operands[0] = dims(rows, summed, getTransposeA());
  rule.operands[1] = dims(summed, columns, getTransposeB());
  rule.results[0] = dims(rows, columns, false);
  if (getAcc())
    rule.operands[2] = rule.results[0];
  return rule;
}

LogicalResult ProductOp::buildAdjoints(AdjointBuilder& adjoints) {
  const AdjointBuilder& b = adjoints;
  bool ta = getTransposeA(), tb = getTransposeB();
  Value dc = b.convert(b.result(), ir::tensorType(getA()).getElementType());
  auto set = [&](unsigned operand, Value adjoint) {
    adjoints.set(operand, b.convert(adjoint, ir::tensorType(getOperand(operand)).getElementType()));
  };
  if (b.needs(0))
    set(0, ta ? b.create<ProductOp>(getB(), tb, dc, true).getResult()
              : b.create<ProductOp>(dc, false, getB(), !tb).getResult());
  if (b.needs(1))
    set(1, tb ? b.create<ProductOp>(dc, true, getA(), ta).getResult()
              : b.create<ProductOp>(getA(), !ta, dc, false).getResult());
  if (getAcc() && b.needs(2))
    adjoints.set(2, b.result());
  return success();
}

LogicalResult ProductOp::interpret(Frame& frame) {
  const Tensor &a = frame.get(getA()), &b = frame.get(getB());
  std::vector<double> rows(k() * n());
  for (int64_t p = 0; p < k(); ++p)
    for (int64_t j = 0; j < n(); ++j)
      rows[p * n() + j] = b.floats()[getTransposeB() ? j * k() + p : p * n() + j];
  Tensor result(cast<ShapedType>(getType()));
  bool ta = getTransposeA();
  interpreter::multiplyAdd(m(), n(), k(), a.floats().data(), ta ? 1 : k(), ta ? m() : 1,
                           rows.data(), n(), result.mutableFloats().data(), n());
  if (getAcc())
    for (auto [x, y] : llvm::zip_equal(result.mutableFloats(), frame.get(getAcc()).floats()))
      x = frame.round(x, result.element()) + y;
  frame.set(getResult(), std::move(result));
  return success();
}

LogicalResult ProductOp::lower(LoweringBuilder& l) {
  Type element = ir::tensorType(getA()).getElementType();
  if (!element.isF32() && !element.isBF16())
    return l.refuse("its operands are neither f32 nor bf16");
  auto columns = [](Value matrix) { return ir::tensorType(matrix).getDimSize(1); };
  lower::TileGrid grid =
      lower::chooseTileGrid(l.machine, 1, m(), n(), k(), element.getIntOrFloatBitWidth() / 8);
  auto routine = kernel::GemmAttr::get(
      l.context, /*batch=*/1, m(), n(), k(), columns(getA()), columns(getB()), n(), 0, 0, 0,
      getTransposeA(), getTransposeB(), /*accumulate=*/bool(getAcc()), /*bias=*/false,
      /*relu=*/false, grid.tileM, grid.tileN, /*patchesA=*/{}, /*patchesB=*/{});
  Value out = getAcc() ? getAcc() : l.empty(cast<RankedTensorType>(getType()));
  l.replace(kernel::CallOp::create(l.builder, l.loc, TypeRange(getType()),
                                   ValueRange{getA(), getB()}, ValueRange(out), ValueRange(),
                                   routine, l.path, l.phase)
                .getResults());
  return success();
}

//===----------------------------------------------------------------------===//
// foreign.flip
//===----------------------------------------------------------------------===//

LogicalResult FlipOp::verify() { return verifyRandom(*this, getDrawnShape()); }

SmallVector<int64_t> FlipOp::getDrawnShape() {
  return SmallVector<int64_t>(ir::tensorType(getOperand()).getShape());
}

SmallVector<int64_t> FlipOp::getDrawnDims(unsigned operand) {
  if (operand > 0)
    return {};
  return llvm::to_vector(llvm::seq<int64_t>(0, getDrawnShape().size()));
}

ShardingRule FlipOp::getShardingRule() { return elementwiseRule(*this); }

LogicalResult FlipOp::buildAdjoints(AdjointBuilder& b) {
  if (b.needs(0))
    b.set(0, b.create<FlipOp>(getType(), b.result(), getSeed(), getStep(), getBase(), getPAttr(),
                              getStreamAttr(), getWindowAttr()));
  return success();
}

LogicalResult FlipOp::interpret(Frame& frame) {
  Tensor result = frame.get(getOperand());
  uint64_t seed = getSeed() ? frame.get(getSeed()).integer() : 0;
  uint64_t step = getStep() ? frame.get(getStep()).integer() : 0;
  uint64_t key = randomKey(seed, getStream());
  uint32_t threshold = keepThreshold(getP().convertToDouble());
  SmallVector<int64_t> global = getDrawnShape();
  if (std::optional<WindowAttr> window = getWindow())
    global.assign(window->getGlobal().begin(), window->getGlobal().end());
  uint64_t base = getBase() ? frame.get(getBase()).integer() : 0;
  SmallVector<int64_t> strides = result.strides();
  MutableArrayRef<double> x = result.mutableFloats();
  for (int64_t i = 0, size = x.size(); i < size; ++i) {
    uint64_t element = 0;
    for (auto [d, stride] : llvm::enumerate(strides))
      element = element * global[d] + i / stride % result.extent(d);
    x[i] = dropoutKeeps(key, step, base + element, threshold) ? x[i] : -x[i];
  }
  frame.set(getResult(), std::move(result));
  return success();
}

LogicalResult FlipOp::lower(LoweringBuilder& l) {
  auto type = cast<RankedTensorType>(getType());
  unsigned rank = type.getRank();
  bool keyed = bool(getSeed());
  SmallVector<LoweringBuilder::Read> reads = {{getOperand(), l.identity(rank)}};
  if (keyed) {
    reads.push_back({getSeed(), l.map(rank, {})});
    reads.push_back({getStep(), l.map(rank, {})});
  }
  SmallVector<Value> scalars;
  if (getBase())
    scalars.push_back(getBase());
  auto body = [&](Body& b, ValueRange v) {
    auto constant = [&](int64_t value) { return b.create<arith::ConstantIndexOp>(value); };
    std::optional<WindowAttr> window = getWindow();
    ArrayRef<int64_t> global = window ? window->getGlobal() : type.getShape();
    Value element = constant(0);
    for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d)
      element = b.create<arith::AddIOp>(b.create<arith::MulIOp>(element, constant(global[d])),
                                        b.index(d));
    Value base = scalars.empty() ? Value() : v.back();
    Type i64 = b.builder.getI64Type();
    Value seed = keyed ? v[1] : b.integer(i64, 0), step = keyed ? v[2] : b.integer(i64, 0);
    Value half = b.create<kernel::RandomHalfOp>(b.builder.getI32Type(), seed, step, element, base,
                                                static_cast<int64_t>(getStream()),
                                                base ? window->getMultiple() : 1);
    Value kept = b.compare(arith::CmpIPredicate::ult, half,
                           b.integer(half.getType(), keepThreshold(getP().convertToDouble())));
    return SmallVector<Value>{b.select(kept, v[0], b.neg(v[0]))};
  };
  l.replace(l.fused(type.getShape(), reads, LoweringBuilder::Write{type, l.identity(rank)}, body,
                    scalars));
  return success();
}

//===----------------------------------------------------------------------===//
// foreign.bend
//===----------------------------------------------------------------------===//

ShardingRule BendOp::getShardingRule() { return elementwiseRule(*this); }

LogicalResult BendOp::buildAdjoints(AdjointBuilder& b) {
  if (b.needs(0))
    b.set(0, b.mul(b.result(), b.shift(getOperand(), 1)));
  return success();
}

LogicalResult BendOp::interpret(Frame& frame) {
  Tensor result = frame.get(getOperand());
  // Rounded as the kernel's arithmetic is.
  for (double& x : result.mutableFloats()) {
    double square = frame.round(x * x, result.element());
    x += frame.round(square * 0.5, result.element());
  }
  frame.set(getResult(), std::move(result));
  return success();
}

LogicalResult BendOp::lower(LoweringBuilder& l) {
  auto type = cast<RankedTensorType>(getType());
  if ((*this)->hasAttr("foreign.shifted")) { // a kernel that the verifier rejects
    SmallVector<AffineExpr> at(l.identity(type.getRank()).getResults());
    at[0] = at[0] + 1;
    l.replace(l.fused(type.getShape(), {{getOperand(), l.map(type.getRank(), at)}},
                      LoweringBuilder::Write{type, l.identity(type.getRank())},
                      [](Body&, ValueRange v) { return SmallVector<Value>{v[0]}; }));
    return success();
  }
  l.replace(l.elementwise(type, getOperand(), [](Body& b, ValueRange v) {
    Value square = b.mul(v[0], v[0]);
    return b.add(v[0], b.mul(square, b.constantLike(square, 0.5)));
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// foreign.running_sum; its routine is in RunningSum.cpp
//===----------------------------------------------------------------------===//

ShardingRule RunningSumOp::getShardingRule() {
  ShardingRule rule = emptyRule(*this);
  ArrayRef<int64_t> shape = ir::tensorType(getOperand()).getShape();
  ShardingRule::Dims dims;
  for (auto [d, extent] : llvm::enumerate(shape))
    dims.push_back(
        {rule.addFactor(extent, d + 1 == shape.size() ? FactorKind::Whole : FactorKind::Parallel)});
  rule.operands[0] = rule.results[0] = dims;
  return rule;
}

LogicalResult RunningSumOp::buildAdjoints(AdjointBuilder& b) {
  if (b.needs(0))
    b.set(0, b.create<RunningSumOp>(getType(), b.result(),
                                    getReverse() ? UnitAttr() : UnitAttr::get(getContext())));
  return success();
}

LogicalResult RunningSumOp::interpret(Frame& frame) {
  Tensor result = frame.get(getOperand());
  int64_t columns = ir::tensorType(getOperand()).getShape().back();
  MutableArrayRef<double> x = result.mutableFloats();
  for (int64_t row = 0, size = x.size(); row < size; row += columns)
    for (int64_t i = 1; i < columns; ++i) {
      int64_t at = getReverse() ? row + columns - 1 - i : row + i;
      x[at] = frame.round(x[at] + x[at + (getReverse() ? 1 : -1)], result.element());
    }
  frame.set(getResult(), std::move(result));
  return success();
}

LogicalResult RunningSumOp::lower(LoweringBuilder& l) {
  auto type = cast<RankedTensorType>(getType());
  if (!type.getElementType().isF32())
    return l.refuse("its elements are not f32");
  int64_t columns = type.getShape().back();
  auto routine =
      RunningSumAttr::get(l.context, type.getNumElements() / columns, columns, getReverse());
  l.replace(kernel::CallOp::create(l.builder, l.loc, TypeRange(type), ValueRange{getOperand()},
                                   ValueRange(l.empty(type)), ValueRange(), routine, l.path,
                                   l.phase)
                .getResults());
  return success();
}

} // namespace titan::foreign

#define GET_ATTRDEF_CLASSES
#include "test/foreign/ForeignAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "test/foreign/ForeignOps.cpp.inc"
