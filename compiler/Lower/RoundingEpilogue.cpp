#include "compiler/Lower/RoundingEpilogue.h"

#include "compiler/Lower/BiasEpilogue.h"
#include "compiler/Support/Collectives.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using titan::kernel::FusedOp;

namespace titan::lower {
namespace {

/// What a body does to one of its arguments before anything else.
struct Prefix {
  Value bias; ///< operand of the kernel; null: none
  bool relu = false;
  arith::TruncFOp rounding;
};

Operation* onlyUser(Value value) { return value.hasOneUse() ? *value.user_begin() : nullptr; }

/// What `add` adds to `argument`.
Value addedTo(BlockArgument argument, arith::AddFOp add) {
  return add.getLhs() == argument ? add.getRhs() : add.getLhs();
}

/// The operand of `op` that the body widens and adds as a bias to `argument`: a vector of bf16, as
/// the result will be, along the last dimension of what the argument reads.
Value biasOf(FusedOp op, BlockArgument argument, arith::AddFOp add, int64_t columns) {
  auto widened = addedTo(argument, add).getDefiningOp<arith::ExtFOp>();
  auto bias = widened ? dyn_cast<BlockArgument>(widened.getIn()) : BlockArgument();
  if (!bias || bias == argument || bias.getArgNumber() >= op.getIns().size())
    return nullptr;
  Value operand = op.getIns()[bias.getArgNumber()];
  auto type = cast<ShapedType>(operand.getType());
  AffineMap map = op.getInMap(argument.getArgNumber()), biasMap = op.getInMap(bias.getArgNumber());
  bool isVector =
      type.getRank() == 1 && type.getDimSize(0) == columns && type.getElementType().isBF16();
  auto read = cast<ShapedType>(op.getIns()[argument.getArgNumber()].getType());
  if (!isVector || read.getShape().back() != columns ||
      map.getResult(map.getNumResults() - 1) != biasMap.getResult(0))
    return nullptr;
  return operand;
}

bool isZero(Value value) {
  FloatAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.getValue().isPosZero();
}

std::optional<Prefix> prefixOf(FusedOp op, BlockArgument argument, int64_t columns) {
  Prefix prefix;
  Value value = argument;
  if (auto add = dyn_cast_or_null<arith::AddFOp>(onlyUser(value))) {
    prefix.bias = biasOf(op, argument, add, columns);
    if (!prefix.bias)
      return std::nullopt;
    value = add;
  }
  if (auto relu = dyn_cast_or_null<arith::MaximumFOp>(onlyUser(value))) {
    if (!isZero(relu.getLhs() == value ? relu.getRhs() : relu.getLhs()))
      return std::nullopt;
    prefix.relu = true;
    value = relu;
  }
  prefix.rounding = dyn_cast_or_null<arith::TruncFOp>(onlyUser(value));
  if (!prefix.rounding || !prefix.rounding.getType().isBF16())
    return std::nullopt;
  return prefix;
}

/// One argument of one reader.
struct Reader {
  FusedOp op;
  unsigned in;
  Prefix prefix;
};

/// All readers of `product`, or none if one of them does not begin with the same prefix.
SmallVector<Reader> readersOf(Value product, int64_t columns) {
  SmallVector<Reader> readers;
  for (OpOperand& use : product.getUses()) {
    auto op = dyn_cast<FusedOp>(use.getOwner());
    if (!op || use.getOperandNumber() >= op.getIns().size())
      return {};
    unsigned in = use.getOperandNumber();
    auto prefix = prefixOf(op, op.getBlock().getArgument(in), columns);
    if (!prefix || (!readers.empty() && (prefix->bias != readers[0].prefix.bias ||
                                         prefix->relu != readers[0].prefix.relu)))
      return {};
    readers.push_back({op, in, *prefix});
  }
  return readers;
}

/// Removes operands that the body does not use, and results that are copies of an operand.
void simplify(RewriterBase& rewriter, FusedOp op, Value rounded) {
  Block& block = op.getBlock();
  auto yield = cast<kernel::YieldOp>(block.getTerminator());
  SmallVector<Value> ins, outs, yields;
  SmallVector<AffineMap> maps, outMaps;
  SmallVector<unsigned> keptOuts;
  for (unsigned j = 0; j < op.getOuts().size(); ++j) {
    auto argument = dyn_cast<BlockArgument>(yield.getValues()[j]);
    bool isCopy = argument && argument.getArgNumber() < op.getIns().size() &&
                  op.getIns()[argument.getArgNumber()] == rounded &&
                  op.getInMap(argument.getArgNumber()) == op.getOutMap(j) &&
                  op.getResultTypes()[j] == rounded.getType() &&
                  op.getOuts()[j].getDefiningOp<kernel::EmptyOp>();
    if (isCopy) {
      rewriter.replaceAllUsesWith(op.getResult(j), rounded);
      continue;
    }
    keptOuts.push_back(j);
    outs.push_back(op.getOuts()[j]);
    outMaps.push_back(op.getOutMap(j));
    yields.push_back(yield.getValues()[j]);
  }
  if (outs.empty())
    return rewriter.eraseOp(op);
  rewriter.modifyOpInPlace(yield, [&] { yield.getValuesMutable().assign(yields); });
  llvm::BitVector unused(block.getNumArguments());
  for (unsigned i = 0; i < op.getIns().size(); ++i) {
    if (block.getArgument(i).use_empty()) {
      unused.set(i);
      continue;
    }
    ins.push_back(op.getIns()[i]);
    maps.push_back(op.getInMap(i));
  }
  llvm::append_range(maps, outMaps);
  block.eraseArguments(unused);
  rewriter.setInsertionPoint(op);
  SmallVector<Type> types;
  for (unsigned j : keptOuts)
    types.push_back(op.getResultTypes()[j]);
  auto simpler = FusedOp::create(
      rewriter, op.getLoc(), types, ins, outs, op.getScalars(), op.getKernelClass(), op.getSpace(),
      rewriter.getAffineMapArrayAttr(maps), op.getPathAttr(), op.getPhaseAttr());
  simpler.getBody().takeBody(op.getBody());
  for (auto [result, j] : llvm::zip_equal(simpler.getResults(), keptOuts))
    rewriter.replaceAllUsesWith(op.getResult(j), result);
  rewriter.eraseOp(op);
}

/// `reader` reads `product`, which is rounded already, instead of rounding it itself.
void readRounded(RewriterBase& rewriter, Reader& reader, Value product) {
  BlockArgument argument = reader.op.getBlock().getArgument(reader.in);
  // From the rounding up to the argument, whose only use is the next of them.
  SmallVector<Operation*> chain;
  for (Operation* op = onlyUser(argument); op != reader.prefix.rounding;
       op = onlyUser(op->getResult(0)))
    chain.push_back(op);
  rewriter.replaceAllUsesWith(reader.prefix.rounding.getResult(), argument);
  rewriter.eraseOp(reader.prefix.rounding);
  for (Operation* op : llvm::reverse(chain)) {
    auto add = dyn_cast<arith::AddFOp>(op);
    Operation* widenedBias = add ? addedTo(argument, add).getDefiningOp() : nullptr;
    rewriter.eraseOp(op);
    if (widenedBias && widenedBias->use_empty())
      rewriter.eraseOp(widenedBias);
  }
  argument.setType(rewriter.getBF16Type());
  reader.op->setOperand(reader.in, product);
}

} // namespace

kernel::CallOp absorbRounding(RewriterBase& rewriter, kernel::CallOp call) {
  kernel::GemmAttr gemm = call.getGemm();
  if (!gemm || gemm.getAccumulate() || gemm.getBias() || gemm.getRelu() || call->use_empty())
    return nullptr;
  auto type = cast<RankedTensorType>(call.getResultTypes()[0]);
  SmallVector<Reader> readers = readersOf(call.getResult(0), gemm.getN());
  if (readers.empty() || !type.getElementType().isF32())
    return nullptr;
  Prefix& prefix = readers[0].prefix;
  Operation* biasOp = prefix.bias ? prefix.bias.getDefiningOp() : nullptr;
  if (biasOp && biasOp->getBlock() == call->getBlock() && call->isBeforeInBlock(biasOp)) {
    rewriter.setInsertionPointAfter(biasOp);
    if (isCollectiveBetween(call, biasOp->getNextNode())) {
      remark::missed(call.getLoc(), remark::RemarkOpts::name("fuse-epilogues").category("lower"))
          << remark::add("the product of '{0}' does not round its result", ir::describePlace(call))
          << remark::reason("a collective starts or is awaited before its bias is there");
      return nullptr;
    }
  } else {
    rewriter.setInsertionPoint(call);
  }

  SmallVector<Value> ins(call.getIns());
  if (prefix.bias)
    ins.push_back(prefix.bias);
  RankedTensorType narrow = type.clone(rewriter.getBF16Type());
  Value out = kernel::EmptyOp::create(rewriter, call.getLoc(), narrow);
  auto rounded =
      kernel::CallOp::create(rewriter, call.getLoc(), TypeRange(narrow), ins, out, ValueRange(),
                             withEpilogue(gemm, prefix.bias != nullptr, prefix.relu),
                             call.getPathAttr(), call.getPhaseAttr());
  SmallVector<FusedOp> ops;
  for (Reader& reader : readers) {
    readRounded(rewriter, reader, rounded.getResult(0));
    if (!llvm::is_contained(ops, reader.op))
      ops.push_back(reader.op);
  }
  for (FusedOp op : ops)
    simplify(rewriter, op, rounded.getResult(0));
  rewriter.eraseOp(call);
  return rounded;
}

} // namespace titan::lower
