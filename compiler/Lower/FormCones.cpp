// titan-lower-form-cones: one kernel for elementwise ops that are read by one of them alone.
#include "compiler/Lower/CombineKernels.h"
#include "compiler/Lower/KernelPair.h"
#include "compiler/Lower/KnownLowerings.h"
#include "compiler/Lower/Passes.h"
#include "compiler/Lower/Rules.h"
#include "compiler/Support/Collectives.h"
#include "compiler/Support/TargetInfo.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"

#include <deque>

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_FORMCONES
#include "compiler/Lower/Passes.h.inc"

namespace {

/// As many operands as leave room for what is fused with the kernel; of single elements, which are
/// read once, there may be more.
constexpr size_t mostOperands = 16, mostElements = 40;

/// Elementwise ops of one shape of which only the last one, the root, is read by others (a maximum
/// fanout-free cone), and the broadcasts and constants that they read.
struct Cone {
  SmallVector<Operation*> ops;              ///< in program order
  llvm::SmallSetVector<Value, 16> operands; ///< of its elementwise ops

  Operation* root() const { return ops.back(); }
};

bool isSplat(Operation* op) {
  auto constant = dyn_cast<ir::ConstantOp>(op);
  return constant && isa<SplatElementsAttr>(constant.getValue());
}

bool isOneElement(Operation* op) {
  return lower::tensorType(op->getResult(0)).getNumElements() == 1;
}

/// Of single elements there are few, but for the sums over all parameters: fusion puts the others
/// where they run together.
bool isCandidate(Operation* op) {
  return lower::isElementwise(op) && (isa<ir::AddOp>(op) || !isOneElement(op));
}

/// The cones of a block.
class Cones {
public:
  explicit Cones(Block& block) {
    for (Operation& op : llvm::reverse(block))
      if (isCandidate(&op))
        addElementwise(&op);
      else if (isa<ir::BroadcastOp>(op) || isSplat(&op))
        addToReaders(&op);
    for (Cone& cone : cones)
      std::reverse(cone.ops.begin(), cone.ops.end());
  }

  /// Of several ops, in program order of their roots.
  SmallVector<const Cone*> ofSeveral() const {
    SmallVector<const Cone*> several;
    for (const Cone& cone : llvm::reverse(cones))
      if (cone.ops.size() > 1)
        several.push_back(&cone);
    return several;
  }

private:
  std::deque<Cone> cones;                                    ///< by falling place of their roots
  llvm::DenseMap<Operation*, Cone*> coneOf;                  ///< of each elementwise op
  llvm::DenseMap<Operation*, SmallVector<Cone*, 1>> conesOf; ///< of each op that has copies

  /// To the cone that all of its readers are in; if there is none, it is the root of another.
  void addElementwise(Operation* op) {
    Cone* cone = coneOfReaders(op);
    if (!cone)
      cone = &cones.emplace_back();
    cone->ops.push_back(op);
    cone->operands.remove(op->getResult(0));
    cone->operands.insert_range(op->getOperands());
    coneOf[op] = cone;
  }

  Cone* coneOfReaders(Operation* op) {
    Cone* cone = nullptr;
    for (Operation* reader : op->getUsers()) {
      Cone* readers = coneOf.lookup(reader);
      if (!readers || (cone && cone != readers))
        return nullptr;
      cone = readers;
    }
    return cone && fits(op, *cone) ? cone : nullptr;
  }

  static bool fits(Operation* op, const Cone& cone) {
    Operation* root = cone.ops.front();
    if (lower::tensorType(op->getResult(0)).getShape() !=
            lower::tensorType(root->getResult(0)).getShape() ||
        ir::getPhase(op) != ir::getPhase(root) || isCollectiveBetween(op, root))
      return false;
    size_t operands = cone.operands.size() - 1;
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      operands += !cone.operands.contains(operand) &&
                  !llvm::is_contained(op->getOperands().take_front(i), operand);
    return operands <= (isOneElement(root) ? mostElements : mostOperands);
  }

  /// Copies of it to the cones of all readers, if each is in one: it costs nothing to compute.
  void addToReaders(Operation* op) {
    llvm::SetVector<Cone*> readers;
    for (Operation* reader : op->getUsers()) {
      if (isCollectiveBetween(op, reader))
        return;
      if (Cone* cone = coneOf.lookup(reader))
        readers.insert(cone);
      else if (auto copies = conesOf.find(reader); isSplat(op) && copies != conesOf.end())
        readers.insert_range(copies->second);
      else
        return;
    }
    for (Cone* cone : readers)
      cone->ops.push_back(op);
    conesOf[op].assign(readers.begin(), readers.end());
  }
};

/// Builds the kernel of a cone.
class ConeBuilder {
public:
  ConeBuilder(const Cone& cone, lower::LoweringBuilder& lowering)
      : cone(cone), lowering(lowering), inside(cone.ops.begin(), cone.ops.end()) {
    for (Operation* op : cone.ops)
      for (Value operand : op->getOperands())
        if (!inside.contains(operand.getDefiningOp()))
          addRead(op, operand);
  }

  /// Replaces the root by it.
  LogicalResult build() {
    RankedTensorType type = lower::tensorType(cone.root()->getResult(0));
    bool isEvaluated = true;
    auto body = [&](lower::Body&, ValueRange arguments) {
      for (auto [value, number] : readOf)
        point.map(value, arguments[number]);
      for (Operation* op : cone.ops)
        isEvaluated &= succeeded(evaluate(op));
      return SmallVector<Value>{point.lookup(cone.root()->getResult(0))};
    };
    Value result = lowering.fused(
        type.getShape(), reads,
        lower::LoweringBuilder::Write{type, lowering.identity(type.getRank())}, body)[0];
    lower::simplifyBody(lowering.builder, result.getDefiningOp<kernel::FusedOp>().getBlock());
    lowering.replace(result);
    return success(isEvaluated);
  }

private:
  const Cone& cone;
  lower::LoweringBuilder& lowering;
  llvm::SmallPtrSet<Operation*, 16> inside;
  SmallVector<lower::LoweringBuilder::Read> reads;
  llvm::MapVector<Value, unsigned> readOf; ///< by the value that an elementwise op reads
  IRMapping point;                         ///< from values to what they are at one point

  /// What an elementwise op reads, it reads itself; what a broadcast reads is read for its result.
  void addRead(Operation* op, Value operand) {
    auto broadcast = dyn_cast<ir::BroadcastOp>(op);
    const unsigned rank = lower::tensorType(cone.root()->getResult(0)).getRank();
    const lower::LoweringBuilder::Read read = {
        operand, broadcast ? lowering.project(rank, broadcast.getDims()) : lowering.identity(rank)};
    auto found = llvm::find_if(reads, [&](const lower::LoweringBuilder::Read& known) {
      return known.tensor == read.tensor && known.map == read.map;
    });
    readOf[broadcast ? broadcast.getResult() : operand] = found - reads.begin();
    if (found == reads.end())
      reads.push_back(read);
  }

  LogicalResult evaluate(Operation* op) {
    if (auto broadcast = dyn_cast<ir::BroadcastOp>(op)) {
      if (inside.contains(broadcast.getOperand().getDefiningOp())) // a constant
        point.map(broadcast.getResult(), point.lookup(broadcast.getOperand()));
      return success();
    }
    lower::LoweringBuilder here(lowering);
    here.op = op;
    here.loc = op->getLoc();
    here.point = &point;
    return cast<ir::LowerableOpInterface>(op).lower(here);
  }
};

struct FormCones : impl::FormConesBase<FormCones> {
  void runOnOperation() override {
    FailureOr<MachineModel> machine = getMachine(getOperation());
    if (failed(machine))
      return signalPassFailure();
    lower::KnownLowerings known(&getContext(), *machine);
    SmallVector<Block*> blocks;
    getOperation().walk([&](Block* block) { blocks.push_back(block); });
    for (Block* block : blocks) {
      Cones cones(*block);
      for (const Cone* cone : cones.ofSeveral()) {
        lower::LoweringBuilder lowering = known.builderFor(cone->root());
        place(*cone, lowering);
        if (lower::areRemarksRead(cone->root()))
          report(*cone);
        auto build = [&] { return ConeBuilder(*cone, lowering).build(); };
        if (failed(known.replace(cone->ops, lowering, build)))
          return signalPassFailure();
        for (Operation* op : llvm::reverse(ArrayRef(cone->ops).drop_back()))
          if (op->use_empty())
            lowering.builder.eraseOp(op);
      }
    }
  }

  static void report(const Cone& cone) {
    SmallVector<std::string> places;
    for (Operation* op : cone.ops)
      if (std::string place = ir::describePlace(op);
          !isSplat(op) && !llvm::is_contained(places, place))
        places.push_back(std::move(place));
    remark::passed(cone.root()->getLoc(), remark::RemarkOpts::name("form-cones").category("lower"))
        << remark::add("{0} ops of '{1}' are one kernel", cone.ops.size(),
                       llvm::join(places, ", "));
  }

  /// The kernel is where all of the ops are. A constant is nobody's.
  static void place(const Cone& cone, lower::LoweringBuilder& lowering) {
    SmallVector<Location> locations;
    lowering.path = {};
    for (Operation* op : cone.ops) {
      locations.push_back(op->getLoc());
      if (!isSplat(op))
        lowering.path = ir::joinPaths(lowering.path, op->getAttrOfType<ArrayAttr>("path"));
    }
    lowering.loc = lowering.builder.getFusedLoc(locations);
  }
};

} // namespace
} // namespace titan
