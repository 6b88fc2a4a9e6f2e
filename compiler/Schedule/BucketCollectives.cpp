// titan-schedule-bucket-collectives: tensors that neighbours exchange, in one exchange.
#include "compiler/Schedule/BucketCollectives.h"

#include "compiler/Schedule/MoveAhead.h"
#include "compiler/Schedule/OpCosts.h"
#include "compiler/Schedule/Passes.h"
#include "compiler/Schedule/Postponer.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/LoopChain.h"
#include "compiler/Support/RecipeAttribute.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_BUCKETCOLLECTIVES
#include "compiler/Schedule/Passes.h.inc"

namespace schedule {

namespace {

/// A sum of gradients, or a gather of what the update makes: stands where its tensors are ready.
/// The update's scalars are one exchange, and stay it.
bool isForSources(Operation* op) {
  const ir::Phase phase = ir::getPhase(op);
  return isa<dist::AllGatherOp>(op)
             ? phase == ir::Phase::Update
             : isa<dist::ReduceScatterOp, dist::AllReduceOp>(op) && phase == ir::Phase::Backward;
}

/// Bytes of the tensors that the group has whole.
int64_t wholeBytes(Operation* op) {
  int64_t bytes = 0;
  for (Type type : isa<dist::AllGatherOp>(op) ? TypeRange(op->getResultTypes())
                                              : TypeRange(op->getOperandTypes()))
    bytes += bytesOf(type);
  return bytes;
}

/// What the collectives of a bucket have in common. Of gathers nothing is added, so that tensors of
/// several types may travel together.
struct Kind {
  OperationName name;
  Attribute axes, order;
  Type element;
  ir::Phase phase;
  bool operator==(const Kind&) const = default;
};

Kind kindOf(Operation* op) {
  const bool sums = !isa<dist::AllGatherOp>(op);
  return {op->getName(), op->getAttr("axes"), op->getAttr("order"),
          sums ? getElementTypeOrSelf(op->getOperandTypes().front()) : Type(), ir::getPhase(op)};
}

struct Bucket {
  Kind kind;
  int64_t bytes = 0, largest = 0; ///< of all members, and of the largest one
  SmallVector<Operation*> members = {};

  /// Small ones go along with one that is too large: a bucket of their own would be one of those
  /// that may be under way, and stand for nothing.
  bool hasRoomFor(Operation* op, int64_t limit) const {
    const int64_t more = wholeBytes(op), together = bytes + more;
    return members.empty() || together <= limit ||
           together - std::max(largest, more) <= limit / partBesideLarge;
  }
  void add(Operation* op) {
    members.push_back(op);
    bytes += wholeBytes(op);
    largest = std::max(largest, wholeBytes(op));
  }

  static constexpr int64_t partBesideLarge = 16; ///< of the limit
};

/// One op of the members of `bucket`, in the place of one of them.
Operation* build(const Bucket& bucket, Operation* place, bool withRemarks) {
  const size_t count = bucket.members.size();
  Operation* joined = joinInBucket(bucket.members, place);
  if (withRemarks && count > 1)
    remark::passed(joined->getLoc(),
                   remark::RemarkOpts::name("bucket-collectives").category("schedule"))
        << remark::add(
               "{0} of {1} tensors over {2} at once: {3}", joined->getName().stripDialect(), count,
               llvm::join(joined->getAttrOfType<ArrayAttr>("axes").getAsValueRange<StringAttr>(),
                          ", "),
               ir::pathString(joined))
        << remark::metric("Bytes", bucket.bytes);
  return joined;
}

/// Casts and padding of a gradient move along with its sum; nothing of the update moves ahead,
/// where backward may not be done.
Lead leadOfSource(Operation* single) {
  if (ir::getPhase(single) != ir::Phase::Update)
    return leadOf(single, /*ownOnly=*/true);
  Operation* source = single->getOperand(0).getDefiningOp();
  const bool isOfUpdate = source && source->getBlock() == single->getBlock() &&
                          ir::getPhase(source) == ir::Phase::Update;
  return {isOfUpdate ? source : nullptr, {}};
}

/// Each tensor by itself, where its readers, or its sources, want it.
void separateAll(Block& block) {
  SmallVector<Operation*> collectives;
  for (Operation& op : block)
    if (gathersForReaders(&op) || isForSources(&op))
      collectives.push_back(&op);
  llvm::DenseMap<Operation*, Operation*> lastBehind; // several for one op keep their order
  IRRewriter rewriter(block.getParentOp()->getContext());
  for (Operation* op : collectives)
    for (Operation* single : separate(rewriter, op)) {
      if (gathersForReaders(single)) {
        if (Operation* reader = firstReader(single->getResult(0)))
          single->moveBefore(reader);
      } else if (const Lead lead = leadOfSource(single); lead.behind) {
        Operation*& last = lastBehind.try_emplace(lead.behind, lead.behind).first->second;
        moveAhead(single, lead, last->getNextNode());
        last = single;
      }
    }
}

/// Neighbours stand where the first of them is read.
void bucketForReaders(Block& block, int64_t limit, bool withRemarks) {
  SmallVector<Bucket> done, open;
  for (Operation& op : block) {
    if (!gathersForReaders(&op))
      continue;
    const Kind kind = kindOf(&op);
    auto* mine = llvm::find_if(open, [&](const Bucket& bucket) { return bucket.kind == kind; });
    if (mine == open.end())
      mine = &open.emplace_back(Bucket{kind});
    const bool isEarlyEnough = mine->members.empty() ||
                               leadOf(&op, /*ownOnly=*/false).mayStandBefore(mine->members.front());
    if (!mine->hasRoomFor(&op, limit) || !isEarlyEnough)
      done.push_back(std::exchange(*mine, Bucket{kind}));
    mine->add(&op);
  }
  llvm::append_range(done, open);
  for (const Bucket& bucket : done) {
    Operation* first = bucket.members.front();
    for (Operation* op : bucket.members)
      moveAhead(op, leadOf(op, /*ownOnly=*/false), first);
    build(bucket, first, withRemarks);
  }
}

/// Neighbours stand where the last of them is ready.
class SourceBuckets : public Postponer {
public:
  SourceBuckets(int64_t limit, bool withRemarks) : limit(limit), withRemarks(withRemarks) {}

private:
  const int64_t limit;
  const bool withRemarks;
  SmallVector<Bucket> open; ///< with members; the oldest first

  void take(Operation* op, Operation* next) override {
    if (!isForSources(op))
      return;
    const Kind kind = kindOf(op);
    auto find = [&] {
      return llvm::find_if(open, [&](const Bucket& bucket) { return bucket.kind == kind; });
    };
    // What waits for one that is full may be of the same kind.
    for (auto* full = find(); full != open.end() && !full->hasRoomFor(op, limit); full = find())
      close(full, next);
    auto* mine = find();
    if (mine == open.end())
      mine = &open.emplace_back(Bucket{kind});
    mine->add(op);
    holdBack(op->getResults());
    if (mine->bytes >= limit)
      close(mine, next);
  }

  bool release(Operation* next) override {
    if (open.empty())
      return false;
    // Parts that a reduce_scatter gives may have room in another.
    auto* scatters = llvm::find_if(open, [](const Bucket& bucket) {
      return isa<dist::ReduceScatterOp>(bucket.members.front());
    });
    close(scatters == open.end() ? open.begin() : scatters, next);
    return true;
  }

  void close(Bucket* full, Operation* next) {
    const Bucket bucket = std::move(*full);
    open.erase(full);
    SmallVector<Value> held;
    for (Operation* op : bucket.members)
      llvm::append_range(held, op->getResults());
    build(bucket, bucket.members.back(), withRemarks);
    give(held, next);
  }
};

} // namespace

void bucketCollectives(func::FuncOp function, int64_t bytes, bool withRemarks) {
  function.walk<WalkOrder::PreOrder>([&](Block* block) {
    separateAll(*block);
    bucketForReaders(*block, bytes, withRemarks);
    SourceBuckets(bytes, withRemarks).run(*block);
  });
}

} // namespace schedule

namespace {

struct BucketCollectives : impl::BucketCollectivesBase<BucketCollectives> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    if (!dist::meshOf(getOperation()))
      return;
    for (auto function : getOperation().getOps<func::FuncOp>())
      schedule::bucketCollectives(function, recipe->mesh.bucket, /*withRemarks=*/true);
  }
};

} // namespace

} // namespace titan
