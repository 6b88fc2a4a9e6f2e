// titan-schedule-chunk-loss: logits of a few rows at a time.
#include "compiler/Schedule/ChunkLoss.h"

#include "compiler/Schedule/OpCosts.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Support/Collectives.h"
#include "dialects/Titan/TensorBuilder.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"

#include <numeric>

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_CHUNKLOSS
#include "compiler/Schedule/Passes.h.inc"

namespace schedule {

namespace {

/// A piece of a random op would have to know where it stands in the whole.
bool canBeCut(Operation* op) {
  return isa<ir::ShardableOpInterface>(op) && !ir::asRandom(op) && op->getNumResults() == 1;
}

/// What `factor` of `op` is where the op continues nothing. An accumulator makes factors whole,
/// because pieces that all start from it would count it more than once; here each continues from
/// the piece before.
ir::FactorKind kindWithoutAccumulator(Operation* op, int64_t factor) {
  Operation* alone = op->clone();
  cast<ir::AccumulatingOpInterface>(alone).getAccMutable().clear();
  ir::FactorKind kind =
      cast<ir::ShardableOpInterface>(alone).getShardingRule().factors[factor].kind;
  alone->erase();
  return kind;
}

/// 0 of what is no tensor: a position in the batch, which random ops read.
int64_t elementsOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getNumElements() : 0;
}

RankedTensorType cutType(Type type, int64_t dim, int64_t chunks) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] /= chunks;
  return tensor.clone(shape);
}

/// The product that makes the logits, through ops that keep their elements, in any order. Not what
/// only repeats elements, as a bias, nor what leads to no product: those are `seen`.
Operation* findHead(Value logits, llvm::SmallPtrSetImpl<Operation*>& seen) {
  Operation* op = logits.getDefiningOp();
  if (!op || !seen.insert(op).second)
    return nullptr;
  if (isa<ir::AccumulatingOpInterface>(op))
    return op;
  if (!isPointwise(op) && !isView(op) && !isa<ir::TransposeOp>(op))
    return nullptr;
  for (Value operand : llvm::reverse(op->getOperands())) {
    Operation* source = operand.getDefiningOp();
    if (!source || source->getBlock() != op->getBlock() ||
        elementsOf(operand) != elementsOf(logits) || workOf(source) == ir::Work::Copied)
      continue;
    if (Operation* head = findHead(operand, seen))
      return head;
  }
  return nullptr;
}

} // namespace

FailureOr<LossRegion> LossRegion::find(ir::CrossEntropyOp loss, int64_t chunks, std::string& why) {
  llvm::SmallPtrSet<Operation*, 8> seen;
  Operation* head = findHead(loss.getLogits(), seen);
  if (!head || cast<ir::AccumulatingOpInterface>(head).getAcc()) {
    why = "its logits are not made by a product";
    return failure();
  }
  std::string first;
  auto shape = cast<RankedTensorType>(head->getResult(0).getType()).getShape();
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    std::string reason;
    LossRegion region;
    if (succeeded(region.grow(head, static_cast<int64_t>(dim), chunks, reason)))
      return region;
    if (first.empty() && extent > 1)
      first = reason;
  }
  why = first.empty() ? "it has one row" : first;
  return failure();
}

LogicalResult LossRegion::grow(Operation* head, int64_t dim, int64_t chunks, std::string& why) {
  Value logits = head->getResult(0);
  rowDim_[logits] = dim;
  if (failed(add(head, why)))
    return failure();
  large_.insert(logits);
  for (Operation* op = head->getNextNode(); op; op = op->getNextNode()) {
    if (llvm::none_of(op->getOperands(), [&](Value v) { return large_.contains(v); }))
      continue;
    if (failed(add(op, why)))
      return failure();
    // What a product makes of them is the gradient of the features or of the weight. Where classes
    // are few it is larger than they are, and all of the backward pass reads it.
    if (!ops_[op].isSum && !isa<ir::AccumulatingOpInterface>(op) &&
        elementsOf(op->getResult(0)) >= elementsOf(logits))
      large_.insert(op->getResult(0));
  }
  // Where rows are 3 x 4 somewhere, they are 3.
  for (auto [value, rowDim] : rowDim_)
    rows_ = std::gcd(rows_, cast<RankedTensorType>(value.getType()).getDimSize(rowDim));
  if (std::gcd(rows_, chunks) == 1) {
    why = (Twine(rows_) + " rows are not divisible by " + Twine(chunks)).str();
    return failure();
  }
  return hoistOperands(why);
}

Operation* LossRegion::head() const { return ops_.begin()->first; }

LogicalResult LossRegion::add(Operation* op, std::string& why) {
  auto refuse = [&](StringRef reason) {
    why = (ir::describePlace(op) + ": " + op->getName().stripDialect() + " " + reason).str();
    return failure();
  };
  if (!canBeCut(op))
    return refuse("reads the logits as a whole");
  ir::ShardingRule rule = cast<ir::ShardableOpInterface>(op).getShardingRule();
  Role role;
  if (ops_.empty()) {
    const auto& factors = rule.results[0][rowDim_[op->getResult(0)]];
    role.factor = factors.empty() ? -1 : factors.front();
  } else {
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      auto found = rowDim_.find(operand);
      if (found == rowDim_.end())
        continue;
      const auto& factors = rule.operands[i][found->second];
      if (factors.empty() || (role.factor >= 0 && role.factor != factors.front()))
        return refuse("mixes the rows");
      role.factor = factors.front();
    }
  }
  if (role.factor < 0)
    return refuse("needs all rows at once");
  ir::FactorKind kind = rule.factors[role.factor].kind;
  if (auto sum = dyn_cast<ir::AccumulatingOpInterface>(op); sum && sum.getAcc())
    kind = kindWithoutAccumulator(op, role.factor);
  if (!ir::isSplittable(kind))
    return refuse("needs all rows at once");
  role.isSum = kind == ir::FactorKind::Reduction;
  if (!role.isSum) {
    int64_t dim = ir::ShardingRule::findDim(rule.results[0], role.factor);
    if (dim < 0)
      return refuse("moves the rows");
    rowDim_[op->getResult(0)] = dim;
  }
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (!rowDim_.contains(operand))
      if (int64_t dim = ir::ShardingRule::findDim(rule.operands[i], role.factor); dim >= 0)
        rowDim_[operand] = dim;
  ops_[op] = role;
  return success();
}

/// Everything from outside has to be there before the first piece.
LogicalResult LossRegion::hoistOperands(std::string& why) {
  Operation* first = ops_.begin()->first;
  Block* block = first->getBlock();
  llvm::SetVector<Operation*> needed;
  SmallVector<Value> open;
  for (auto& [op, role] : ops_)
    llvm::append_range(open, op->getOperands());
  while (!open.empty()) {
    Operation* source = open.pop_back_val().getDefiningOp();
    if (!source || source->getBlock() != block || ops_.contains(source) ||
        source->isBeforeInBlock(first) || !needed.insert(source))
      continue;
    if (isCollective(source)) {
      why = "it needs what ranks exchange behind its logits";
      return failure();
    }
    llvm::append_range(open, source->getOperands());
    for (Value operand : source->getOperands())
      if (Operation* before = operand.getDefiningOp(); before && ops_.contains(before)) {
        why = "its gradient depends on the loss itself";
        return failure();
      }
  }
  SmallVector<Operation*> ordered(needed.begin(), needed.end());
  llvm::sort(ordered, [](Operation* a, Operation* b) { return a->isBeforeInBlock(b); });
  for (Operation* op : ordered)
    op->moveBefore(first);
  return success();
}

void LossRegion::cut(int64_t chunks) {
  Operation* first = ops_.begin()->first;
  OpBuilder builder(first);
  llvm::MapVector<Operation*, SmallVector<Value>> pieces;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    IRMapping mapping;
    auto pieceOf = [&](Value whole, Operation* reader) -> Value {
      auto found = rowDim_.find(whole);
      if (found == rowDim_.end())
        return whole;
      RankedTensorType type = cutType(whole.getType(), found->second, chunks);
      ir::TensorBuilder t(builder, reader);
      SplatElementsAttr splat;
      if (matchPattern(whole, m_Constant(&splat)))
        return t.create<ir::ConstantOp>(TypedAttr(splat.resizeSplat(type)));
      SmallVector<int64_t> offsets(type.getRank(), 0), strides(type.getRank(), 1);
      offsets[found->second] = chunk * type.getDimSize(found->second);
      return t.create<ir::SliceOp>(type, whole, offsets, strides);
    };
    for (auto& [op, role] : ops_) {
      for (Value operand : op->getOperands())
        if (!mapping.contains(operand))
          mapping.map(operand, pieceOf(operand, op));
      Operation* piece = builder.clone(*op, mapping);
      Value result = piece->getResult(0);
      if (!role.isSum) {
        result.setType(cutType(result.getType(), rowDim_[op->getResult(0)], chunks));
      } else if (chunk > 0) {
        Value sum = pieces[op].back();
        if (auto accumulating = dyn_cast<ir::AccumulatingOpInterface>(piece))
          accumulating.getAccMutable().assign(sum);
        else
          result = ir::TensorBuilder(builder, op).add(sum, result);
      }
      mapping.map(op->getResult(0), result);
      pieces[op].push_back(result);
    }
  }
  for (auto& [op, role] : ops_) {
    Value whole = op->getResult(0);
    bool isReadOutside =
        llvm::any_of(whole.getUsers(), [&](Operation* user) { return !ops_.contains(user); });
    if (!isReadOutside)
      continue;
    Value joined = pieces[op].back();
    if (!role.isSum)
      joined = ir::TensorBuilder(builder, op)
                   .create<ir::ConcatOp>(ValueRange(pieces[op]), rowDim_[whole]);
    whole.replaceUsesWithIf(joined, [&](OpOperand& use) { return !ops_.contains(use.getOwner()); });
  }
  for (auto& [op, role] : llvm::reverse(ops_))
    op->erase();
}

namespace {

/// Cuts one loss; what of `chunks` one dimension cannot take falls to the pieces.
void chunkLoss(ir::CrossEntropyOp loss, int64_t chunks, std::string& why) {
  FailureOr<LossRegion> region = LossRegion::find(loss, chunks, why);
  if (failed(region))
    return;
  const int64_t here = std::gcd(region->rows(), chunks);
  Block* block = loss->getBlock();
  Operation* before = region->head()->getPrevNode();
  region->cut(here);
  if (chunks == here)
    return;
  SmallVector<ir::CrossEntropyOp> pieces;
  for (auto it = before ? std::next(before->getIterator()) : block->begin(); it != block->end();
       ++it)
    if (auto piece = dyn_cast<ir::CrossEntropyOp>(*it))
      pieces.push_back(piece);
  // The rest of the block may hold other losses; these pieces are the first.
  for (ir::CrossEntropyOp piece : ArrayRef(pieces).take_front(here))
    chunkLoss(piece, chunks / here, why);
}

} // namespace

SmallVector<WholeLoss> chunkLosses(func::FuncOp step, int64_t chunks, bool withRemarks) {
  SmallVector<WholeLoss> whole;
  SmallVector<ir::CrossEntropyOp> losses;
  step.walk([&](ir::CrossEntropyOp loss) { losses.push_back(loss); });
  for (ir::CrossEntropyOp loss : losses) {
    Location loc = loss.getLoc();
    std::string place = ir::describePlace(loss), why;
    const int64_t bytes = bytesOf(loss.getLogits().getType());
    chunkLoss(loss, chunks, why);
    if (!why.empty())
      whole.push_back({loc, place, why});
    if (!withRemarks)
      continue;
    auto opts = remark::RemarkOpts::name("chunk-loss").category("schedule");
    if (!why.empty())
      remark::missed(loc, opts) << remark::add("'{0}' is not cut into {1} chunks", place, chunks)
                                << remark::reason("{0}", why);
    else
      remark::passed(loc, opts) << remark::add("'{0}' runs in {1} chunks of rows", place, chunks)
                                << remark::metric("Bytes", bytes - bytes / chunks);
  }
  return whole;
}

} // namespace schedule

namespace {

struct ChunkLoss : impl::ChunkLossBase<ChunkLoss> {
  using ChunkLossBase::ChunkLossBase;

  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>(ir::function::step);
    if (step && chunks > 1)
      schedule::chunkLosses(step, chunks, /*withRemarks=*/true);
  }
};

} // namespace

} // namespace titan
