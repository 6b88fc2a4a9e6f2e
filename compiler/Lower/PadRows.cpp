// titan-lower-pad-rows: rows of a temporary begin at multiples of what a wide access needs.
#include "compiler/Lower/Passes.h"
#include "compiler/Support/TargetInfo.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_PADROWS
#include "compiler/Lower/Passes.h.inc"

namespace {

constexpr int64_t longRowBytes = 4096;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

int64_t rowOf(Value value) { return typeOf(value).getShape().back(); }

/// Distances in A, B and C of a product, in this order.
struct Pitches {
  explicit Pitches(kernel::GemmAttr gemm)
      : leading{gemm.getLda(), gemm.getLdb(), gemm.getLdc()},
        strides{gemm.getStrideA(), gemm.getStrideB(), gemm.getStrideC()} {}

  int64_t leading[3], strides[3];
};

/// Which of these `operand` is: only the bias, which is none, stands between B and C.
unsigned matrixOf(OpOperand& operand) { return std::min(operand.getOperandNumber(), 2u); }

/// `call` with `pitch` elements from row to row of `operand`.
void setLeading(kernel::CallOp call, OpOperand& operand, int64_t pitch) {
  kernel::GemmAttr gemm = call.getGemm();
  Pitches of(gemm);
  const unsigned matrix = matrixOf(operand);
  of.strides[matrix] = of.strides[matrix] / of.leading[matrix] * pitch;
  of.leading[matrix] = pitch;
  call.setRoutineAttr(kernel::GemmAttr::get(
      gemm.getContext(), gemm.getBatch(), gemm.getM(), gemm.getN(), gemm.getK(), of.leading[0],
      of.leading[1], of.leading[2], of.strides[0], of.strides[1], of.strides[2],
      gemm.getTransposeA(), gemm.getTransposeB(), gemm.getAccumulate(), gemm.getBias(),
      gemm.getRelu(), gemm.getTileM(), gemm.getTileN(), gemm.getPatchesA(), gemm.getPatchesB()));
}

/// What lies in the memory that one op takes from a kernel.empty: the values, and all that reads or
/// writes them.
class Temporary {
public:
  explicit Temporary(OpOperand& out) : out_(out) { isKnown_ = add(out); }

  /// False: an op that knows no pitch uses it; `obstacle` is that op.
  bool isKnown() const { return isKnown_; }
  Operation* obstacle() const { return obstacle_; }
  /// Does a product or a reduction find rows in it? To all others it is one line of elements.
  bool hasRows() const {
    return llvm::any_of(uses_, [](OpOperand* use) {
      auto fused = dyn_cast<kernel::FusedOp>(use->getOwner());
      return isa<kernel::CallOp>(use->getOwner()) ||
             (fused && !fused.getBlock().getOps<kernel::ReduceOp>().empty());
    });
  }

  void setPitch(int64_t pitch) {
    OpBuilder builder(out_.getOwner());
    auto padded = [&](Value value) {
      SmallVector<int64_t> shape(typeOf(value).getShape());
      shape.back() = pitch;
      return typeOf(value).clone(shape);
    };
    Value memory = kernel::EmptyOp::create(builder, out_.get().getLoc(), padded(out_.get()));
    for (OpOperand* use : uses_)
      if (auto call = dyn_cast<kernel::CallOp>(use->getOwner()))
        setLeading(call, *use, pitch);
    out_.set(memory);
    for (Value value : values_)
      value.setType(padded(value));
  }

private:
  /// `use`, and what its op makes of it.
  bool add(OpOperand& use) {
    uses_.push_back(&use);
    obstacle_ = use.getOwner();
    return TypeSwitch<Operation*, bool>(use.getOwner())
        .Case([&](kernel::FusedOp op) { return addWritten(op.getWrites(), use); })
        .Case([&](kernel::CallOp call) {
          return isMatrix(call, use) && addWritten(call.getWrites(), use);
        })
        .Case([&](kernel::CastShapeOp cast) {
          return typeOf(cast.getResult()).getRank() > 0 &&
                 rowOf(cast.getResult()) == rowOf(use.get()) && addValue(cast.getResult());
        })
        .Default(false);
  }

  /// If `use` is written, the result lies there.
  bool addWritten(ArrayRef<OpOperand*> writes, OpOperand& use) {
    const auto* found = llvm::find(writes, &use);
    return found == writes.end() ||
           addValue(use.getOwner()->getResult(static_cast<unsigned>(found - writes.begin())));
  }

  bool addValue(Value value) {
    values_.push_back(value);
    return llvm::all_of(value.getUses(), [&](OpOperand& use) { return add(use); });
  }

  /// Are the operand's rows those of the matrix?
  static bool isMatrix(kernel::CallOp call, OpOperand& use) {
    if (!call.getGemm() || (use.getOperandNumber() == 2 && call.getGemm().getBias()))
      return false;
    const Pitches of(call.getGemm());
    const unsigned matrix = matrixOf(use);
    if ((matrix == 0 && call.getGemm().getPatchesA()) ||
        (matrix == 1 && call.getGemm().getPatchesB()))
      return false;
    return of.leading[matrix] == rowOf(use.get()) && of.strides[matrix] % of.leading[matrix] == 0;
  }

  OpOperand& out_;
  SmallVector<OpOperand*> uses_;
  SmallVector<Value> values_;
  Operation* obstacle_ = nullptr;
  bool isKnown_;
};

struct PadRows : impl::PadRowsBase<PadRows> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<MachineModel> machine = getMachine(getOperation());
    if (failed(machine))
      return signalPassFailure();
    const int64_t ofShort = alignment ? alignment : machine->rowAlignment,
                  ofLong = longAlignment ? longAlignment : machine->longRowAlignment;
    SmallVector<OpOperand*> outs;
    getOperation().walk([&](kernel::CommandLikeOpInterface op) {
      for (OpOperand* out : op.getWrites())
        if (out->get().getDefiningOp<kernel::EmptyOp>() && typeOf(out->get()).getRank() > 1)
          outs.push_back(out);
    });
    for (OpOperand* out : outs)
      pad(*out, ofShort, ofLong);
    getOperation().walk([](kernel::EmptyOp empty) {
      if (empty->use_empty())
        empty.erase();
    });
  }

  void pad(OpOperand& out, int64_t ofShort, int64_t ofLong) {
    const int64_t width = typeOf(out.get()).getElementTypeBitWidth();
    const int64_t element = llvm::divideCeilSigned(width, 8), bytes = rowOf(out.get()) * element;
    const int64_t pitch = llvm::alignTo(bytes, bytes > longRowBytes ? ofLong : ofShort);
    // A row of one element is a line's element to all others.
    if (bytes < shortestRow || rowOf(out.get()) == 1 || pitch == bytes || pitch % element != 0)
      return;
    Temporary temporary(out);
    if (!temporary.hasRows())
      return;
    Operation* op = out.getOwner();
    const auto options = remark::RemarkOpts::name("pad-rows").category("lower");
    if (!temporary.isKnown()) {
      remark::missed(op->getLoc(), options)
          << remark::add("rows of '{0}' keep {1} bytes", ir::describePlace(op), bytes)
          << remark::reason("'{0}' takes them as they are",
                            temporary.obstacle()->getName().getStringRef());
      return;
    }
    temporary.setPitch(pitch / element);
    remark::passed(op->getLoc(), options)
        << remark::add("rows of '{0}' have {1} bytes in {2}", ir::describePlace(op), bytes, pitch);
  }
};

} // namespace
} // namespace titan
