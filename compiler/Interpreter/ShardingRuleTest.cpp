// Every sharding rule by execution: split the operands along a factor, run the op on the pieces,
// recombine, compare.
#include "compiler/Interpreter/Equivalence.h"
#include "compiler/Interpreter/RandomArguments.h"
#include "compiler/Interpreter/testing/ModuleFixture.h"
#include "compiler/Interpreter/testing/OpInstances.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include "mlir/IR/Verifier.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace titan::interpreter;
using titan::ir::Factor;
using titan::ir::FactorKind;
using titan::ir::ShardingRule;

namespace {

using titan::interpreter::testing::Instance;
using titan::interpreter::testing::OpInstances;
using titan::interpreter::testing::Run;

OpInstances& instances() {
  static auto* loaded = new OpInstances(titan::interpreter::testing::moduleRegistry());
  return *loaded;
}

/// `factor` as an inner factor of some dimension: its pieces are not contiguous there.
bool isInnerSomewhere(const ShardingRule& rule, int64_t factor) {
  for (const auto* side : {&rule.operands, &rule.results})
    for (const ShardingRule::Dims& dims : *side)
      for (const auto& list : dims)
        if (llvm::is_contained(ArrayRef(list).drop_front(list.empty() ? 0 : 1), factor))
          return true;
  return false;
}

RankedTensorType pieceType(Type type, int64_t dim, int64_t pieces) {
  auto tensor = cast<RankedTensorType>(type);
  if (dim < 0)
    return tensor;
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] /= pieces;
  return tensor.clone(shape);
}

Tensor pieceOf(const Tensor& whole, int64_t dim, int64_t piece, int64_t pieces) {
  if (dim < 0)
    return whole;
  Tensor result(pieceType(whole.type(), dim, pieces));
  Walk from = wholeWalk(whole);
  from.start = piece * result.extent(dim) * from.strides[dim];
  copyElements(result.shape(), whole, from, result, wholeWalk(result));
  return result;
}

/// Splits one op along one factor and compares with the whole.
class Split {
public:
  Split(const Instance& instance, const ShardingRule& rule, int64_t factor, int64_t pieces)
      : instance(instance), rule(rule), factor(factor), pieces(pieces) {}

  void check(ArrayRef<Tensor> operands) {
    FailureOr<SmallVector<Tensor>> whole = runOp(operands, /*piece=*/-1);
    ASSERT_TRUE(succeeded(whole));
    std::vector<SmallVector<Tensor>> parts;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      SmallVector<Tensor> arguments;
      for (auto [operand, dims] : llvm::zip_equal(operands, rule.operands))
        arguments.push_back(pieceOf(operand, ShardingRule::findDim(dims, factor), piece, pieces));
      FailureOr<SmallVector<Tensor>> part = runOp(arguments, piece);
      ASSERT_TRUE(succeeded(part));
      parts.push_back(*part);
    }
    for (auto [r, result] : llvm::enumerate(*whole))
      EXPECT_EQ(describeDifference(result, recombine(r, result, parts), 1e-12), "")
          << instance.name << ", factor " << factor << ", result " << r;
  }

private:
  /// The op on operands of these types, in a function of its own. For dropout `piece` says which
  /// part of the whole this is.
  FailureOr<SmallVector<Tensor>> runOp(ArrayRef<Tensor> operands, int64_t piece) {
    OpBuilder builder(instance.op->getContext());
    SmallVector<Type> types;
    for (const Tensor& operand : operands)
      types.push_back(operand.type());
    auto function = func::FuncOp::create(builder, instance.op->getLoc(), "piece",
                                         builder.getFunctionType(types, {}));
    OwningOpRef<func::FuncOp> owner(function);
    builder.setInsertionPointToEnd(function.addEntryBlock());
    Operation* op = builder.clone(*instance.op);
    op->setOperands(0, operands.size(), function.getArguments());
    for (auto [result, dims] : llvm::zip_equal(op->getResults(), rule.results))
      result.setType(
          piece < 0 ? RankedTensorType(cast<RankedTensorType>(result.getType()))
                    : pieceType(result.getType(), ShardingRule::findDim(dims, factor), pieces));
    if (auto constant = dyn_cast<titan::ir::ConstantOp>(op))
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
        constant.setValueAttr(
            cast<ElementsAttr>(Attribute(splat.resizeSplat(cast<ShapedType>(constant.getType())))));
    if (auto random = titan::ir::asRandom(op); random && piece >= 0)
      placeInWhole(random, piece);
    func::ReturnOp::create(builder, op->getLoc(), op->getResults());
    function.setFunctionType(builder.getFunctionType(types, op->getResultTypes()));
    if (failed(verify(function)))
      return failure();
    return titan::interpreter::run(function, operands, Engine::F64);
  }

  void placeInWhole(titan::ir::RandomOpInterface random, int64_t piece) {
    SmallVector<int64_t> global = cast<titan::ir::RandomOpInterface>(instance.op).getDrawnShape(),
                         local = random.getDrawnShape();
    int64_t base = 0; // stays where all pieces share their decisions
    for (auto [d, extent] : llvm::enumerate(global))
      if (extent != local[d])
        base = piece * local[d] * ShapedType::getNumElements(ArrayRef(global).drop_front(d + 1));
    OpBuilder builder(random);
    Location loc = instance.op->getLoc();
    random.place(titan::ir::WindowAttr::get(builder.getContext(), global, /*multiple=*/1),
                 arith::ConstantIndexOp::create(builder, loc, base));
  }

  Tensor recombine(unsigned r, const Tensor& whole, ArrayRef<SmallVector<Tensor>> parts) {
    int64_t dim = ShardingRule::findDim(rule.results[r], factor);
    Tensor result(whole.shape(), whole.element());
    Walk to = wholeWalk(result);
    for (const SmallVector<Tensor>& part : parts) {
      const Tensor& piece = part[r];
      if (dim >= 0) {
        copyElements(piece.shape(), piece, wholeWalk(piece), result, to);
        to.start += piece.extent(dim) * to.strides[dim];
      } else if (rule.factors[factor].kind == FactorKind::Parallel) {
        result = piece; // the factor is not in this result: every piece gives all of it
      } else if (result.isFloat()) {
        for (auto [sum, x] : llvm::zip_equal(result.mutableFloats(), piece.floats()))
          sum += x;
      } else {
        for (auto [sum, x] : llvm::zip_equal(result.mutableIntegers(), piece.integers()))
          sum += x;
      }
    }
    return result;
  }

  const Instance& instance;
  const ShardingRule& rule;
  int64_t factor, pieces;
};

TEST(ShardingRule, PiecesRecombineToTheWhole) {
  int64_t splits = 0;
  for (const Instance& instance : instances().all()) {
    auto shardable = dyn_cast<titan::ir::ShardableOpInterface>(instance.op);
    bool hasIndex = llvm::any_of(instance.op->getOperandTypes(),
                                 [](Type type) { return !isa<RankedTensorType>(type); });
    if (!shardable || hasIndex)
      continue;
    SmallVector<Tensor> arguments = randomArguments(instance.function);
    if (!instance.runs.empty())
      arguments.assign(instance.runs.front().arguments.begin(),
                       instance.runs.front().arguments.end());
    SmallVector<Tensor> operands;
    for (Value operand : instance.op->getOperands())
      operands.push_back(arguments[cast<BlockArgument>(operand).getArgNumber()]);
    ShardingRule rule = shardable.getShardingRule();
    for (auto [f, factor] : llvm::enumerate(rule.factors)) {
      if (!titan::ir::isSplittable(factor.kind) || factor.size < 2 || isInnerSomewhere(rule, f))
        continue;
      int64_t pieces = factor.size % 2 == 0 ? 2 : factor.size;
      Split(instance, rule, f, pieces).check(operands);
      ++splits;
    }
  }
  EXPECT_GT(splits, 100);
}

TEST(ShardingRule, EveryShardableOpHasAnInstance) {
  EXPECT_EQ(instances().findWithout<titan::ir::ShardableOpInterface>(), std::vector<std::string>());
}

} // namespace
