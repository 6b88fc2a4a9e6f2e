#include "compiler/Codegen/LabelClasses.h"

#include "compiler/Memory/Liveness.h"
#include "dialects/Kernel/Kernel.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace titan::codegen {
namespace {

/// The coordinate that `value` is, through changes of type.
kernel::IndexOp coordinateOf(Value value) {
  while (auto cast = value.getDefiningOp<arith::IndexCastOp>())
    value = cast.getIn();
  return value.getDefiningOp<kernel::IndexOp>();
}

/// The extents of dimensions of `op` with whose coordinates `user`, in its body, compares for
/// equality.
SmallVector<int64_t> comparedExtents(kernel::FusedOp op, Operation* user) {
  SmallVector<int64_t> extents;
  auto compare = dyn_cast<arith::CmpIOp>(user);
  if (compare && compare.getPredicate() == arith::CmpIPredicate::eq)
    for (Value side : compare->getOperands())
      if (kernel::IndexOp index = coordinateOf(side))
        extents.push_back(op.getSpace()[index.getDim()]);
  return extents;
}

bool isChangeOfType(Operation* op) {
  return isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op);
}

/// The rows of a table, or the places along a dimension, that operand number `operand` chooses
/// from.
int64_t entriesOf(kernel::RoutineAttrInterface routine, unsigned operand) {
  if (auto embedding = dyn_cast<kernel::EmbeddingAttr>(routine); embedding && operand == 1)
    return embedding.getEntries();
  if (auto scatter = dyn_cast<kernel::ScatterAttr>(routine); scatter && operand == 0)
    return scatter.getEntries();
  return 0;
}

/// Follows a label from the input on: into views, kernel bodies, and buffers that a body passes it
/// on to.
class Labels {
public:
  int64_t inBuffer(Value buffer) {
    int64_t classes = 0;
    if (!seen_.insert(buffer).second)
      return classes;
    for (OpOperand& use : buffer.getUses()) {
      if (memory::isView(use.getOwner()))
        classes = std::max(classes, inBuffer(use.getOwner()->getResult(0)));
      if (auto call = dyn_cast<kernel::CallOp>(use.getOwner()))
        classes = std::max(classes, entriesOf(call.getRoutine(), use.getOperandNumber()));
      if (auto fused = dyn_cast<kernel::FusedOp>(use.getOwner()))
        if (use.getOperandNumber() < fused.getIns().size())
          classes = std::max(classes,
                             inBody(fused, fused.getBlock().getArgument(use.getOperandNumber())));
    }
    return classes;
  }

private:
  int64_t inBody(kernel::FusedOp op, Value label) {
    int64_t classes = 0;
    for (OpOperand& use : label.getUses()) {
      Operation* user = use.getOwner();
      // In a select it is a value, not the condition: eval puts ignore_index into rows that are
      // padding.
      if (isChangeOfType(user) || isa<arith::SelectOp>(user))
        classes = std::max(classes, inBody(op, user->getResult(0)));
      else if (isa<kernel::YieldOp>(user))
        classes = std::max(classes, inBuffer(op.getOuts()[use.getOperandNumber()]));
      for (int64_t extent : comparedExtents(op, user))
        classes = std::max(classes, extent);
    }
    return classes;
  }

  llvm::DenseSet<Value> seen_;
};

/// The element of a sample that each element of a buffer holds; kNone: of none.
using Places = SmallVector<int64_t>;
constexpr int64_t kNone = -1;
/// Larger inputs are looked at as a whole, and so are samples of more runs.
constexpr int64_t kMostPlaces = int64_t(1) << 18;
constexpr size_t kMostRuns = 1024;

/// The points of a kernel's space that differ in what `maps` make of them.
SmallVector<SmallVector<int64_t>> pointsOf(kernel::FusedOp op, ArrayRef<AffineMap> maps) {
  SmallVector<int64_t> extents;
  int64_t count = 1;
  for (auto [d, extent] : llvm::enumerate(op.getSpace())) {
    const bool isRead =
        llvm::any_of(maps, [&](AffineMap map) { return map.isFunctionOfDim(unsigned(d)); });
    extents.push_back(isRead ? extent : 1);
    count *= extents.back();
    if (count > kMostPlaces)
      return {};
  }
  SmallVector<SmallVector<int64_t>> points;
  for (int64_t i = 0; i < count; ++i)
    points.push_back(delinearize(i, computeStrides(extents)));
  return points;
}

int64_t elementAt(AffineMap map, ArrayRef<int64_t> point, Value buffer) {
  return linearize(map.compose(point),
                   computeStrides(cast<MemRefType>(buffer.getType()).getShape()));
}

/// Is `select` an index that counts from the end where it is negative: x < 0 ? x + n : x?
bool isWrapped(arith::SelectOp select, Value index) {
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  return select.getFalseValue() == index && compare && compare.getLhs() == index &&
         compare.getPredicate() == arith::CmpIPredicate::slt;
}

/// Follows labels from the input on as Labels do, each element of a sample by itself.
class LabelsByElement {
public:
  explicit LabelsByElement(int64_t elements) : classes_(elements, 0) {}

  void inBuffer(Value buffer, const Places& places) {
    if (!open_.insert(buffer).second)
      return;
    for (OpOperand& use : buffer.getUses()) {
      Operation* user = use.getOwner();
      if (isa<kernel::CastShapeOp, kernel::SliceOp>(user))
        inView(user->getResult(0), places);
      if (auto call = dyn_cast<kernel::CallOp>(user))
        for (int64_t place : places)
          bound(place, entriesOf(call.getRoutine(), use.getOperandNumber()));
      if (auto fused = dyn_cast<kernel::FusedOp>(user))
        if (use.getOperandNumber() < fused.getIns().size())
          inBody(fused, use.getOperandNumber(),
                 fused.getBlock().getArgument(use.getOperandNumber()), places);
    }
    open_.erase(buffer);
  }
  ArrayRef<int64_t> classes() const { return classes_; }

private:
  void bound(int64_t place, int64_t classes) {
    if (place != kNone && classes > 0 && (classes_[place] == 0 || classes < classes_[place]))
      classes_[place] = classes;
  }

  /// Of another shape, or what one microbatch has of it: whole samples.
  void inView(Value view, const Places& places) {
    const int64_t count = cast<MemRefType>(view.getType()).getNumElements();
    if (count % static_cast<int64_t>(classes_.size()) == 0 || count == int64_t(places.size()))
      inBuffer(view, Places(ArrayRef(places).take_front(size_t(count))));
  }

  void inBody(kernel::FusedOp op, unsigned operand, Value label, const Places& places) {
    const AffineMap in = op.getInMap(operand);
    const auto placeAt = [&](ArrayRef<int64_t> point) {
      return places[size_t(elementAt(in, point, op.getIns()[operand]))];
    };
    for (OpOperand& use : label.getUses()) {
      Operation* user = use.getOwner();
      auto select = dyn_cast<arith::SelectOp>(user);
      if (isChangeOfType(user) || (select && isWrapped(select, label)))
        inBody(op, operand, user->getResult(0), places);
      if (isa<kernel::YieldOp>(user)) {
        Value out = op.getOuts()[use.getOperandNumber()];
        const AffineMap map = op.getOutMap(use.getOperandNumber());
        Places moved(size_t(cast<MemRefType>(out.getType()).getNumElements()), kNone);
        for (ArrayRef<int64_t> point : pointsOf(op, {in, map}))
          moved[size_t(elementAt(map, point, out))] = placeAt(point);
        inBuffer(out, moved);
      }
      for (int64_t extent : comparedExtents(op, user))
        for (ArrayRef<int64_t> point : pointsOf(op, {in}))
          bound(placeAt(point), extent);
    }
  }

  SmallVector<int64_t> classes_;
  llvm::DenseSet<Value> open_; ///< whose readers are being looked at
};

/// The length of the shortest part of `values` that they repeat.
size_t periodOf(ArrayRef<int64_t> values) {
  for (size_t period = 1; period < values.size(); ++period)
    if (values.size() % period == 0 && values.drop_front(period) == values.drop_back(period))
      return period;
  return values.size();
}

} // namespace

int64_t labelClasses(Value input) {
  if (!isa<IntegerType>(cast<ShapedType>(input.getType()).getElementType()))
    return 0;
  return Labels().inBuffer(input);
}

std::vector<ClassRun> classRuns(Value input, int64_t largest, size_t leading) {
  auto type = cast<MemRefType>(input.getType());
  const int64_t all = type.getNumElements();
  if (largest == 0 || type.getRank() < static_cast<int64_t>(leading))
    return {}; // no labels, or no samples
  const int64_t elements = ShapedType::getNumElements(type.getShape().drop_front(leading));
  if (elements <= 1 || all > kMostPlaces)
    return {};
  Places places;
  for (int64_t i = 0; i < all; ++i)
    places.push_back(i % elements);
  LabelsByElement labels(elements);
  labels.inBuffer(input, places);
  if (llvm::all_of(labels.classes(), [&](int64_t own) { return own == 0 || own >= largest; }))
    return {};
  std::vector<ClassRun> runs;
  for (int64_t classes : labels.classes().take_front(periodOf(labels.classes()))) {
    if (runs.empty() || runs.back().classes != classes)
      runs.push_back({0, classes});
    ++runs.back().count;
  }
  return runs.size() > kMostRuns ? std::vector<ClassRun>() : runs;
}

} // namespace titan::codegen
