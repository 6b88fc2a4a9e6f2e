// The attention routine of kernel.call: its units, and what its views touch.
#include "dialects/Kernel/AttentionRoutine.h"

using namespace mlir;

namespace titan::kernel {
namespace {

/// One operand of the routine: which list it stands in and what it must hold.
struct Touched {
  StringRef name;
  bool isOut;
  int64_t operand;
  Type element;
  int64_t elements; ///< up to the last that is touched
};

Touched touchedBy(StringRef name, bool isOut, ViewAttr view, AttentionAttr attention, bool ofKeys,
                  int64_t width) {
  int64_t rows = ofKeys ? attention.getKeys() : attention.getQueries();
  int64_t heads = ofKeys ? attention.getKeyHeads() : attention.getHeads();
  int64_t last = view.getOffset() + (attention.getBatch() - 1) * view.getBatch() +
                 (rows - 1) * view.getRow() + (heads - 1) * view.getHead() + width;
  return {name, isOut, view.getOperand(), attention.getElement(), last};
}

SmallVector<Touched> touchedOperands(AttentionAttr attention) {
  AttentionGradientAttr gradient = attention.getGradient();
  FloatType accumulation = attention.getAccumulation();
  int64_t width = attention.getWidth(), valueWidth = attention.getValueWidth();
  auto view = [&](StringRef name, bool isOut, ViewAttr view, bool ofKeys, int64_t width) {
    return touchedBy(name, isOut, view, attention, ofKeys, width);
  };
  SmallVector<Touched> touched = {
      view("query", false, attention.getQuery(), false, width),
      view("key", false, attention.getKey(), true, width),
      view("value", false, attention.getValue(), true, valueWidth),
      view("result", !gradient, attention.getResult(), false, valueWidth),
      {"log_sum_exp", !gradient, attention.getLogSumExp(), accumulation,
       attention.getBatch() * attention.getQueries() * attention.getHeads()}};
  if (attention.keepsLargest())
    touched.push_back({"largest", !gradient, attention.getLargest(), accumulation,
                       attention.getBatch() * attention.getQueries() * attention.getHeads()});
  if (AttentionMaskAttr mask = attention.getMask()) {
    Type element =
        mask.getBoolean() ? Type(IntegerType::get(attention.getContext(), 1)) : Type(accumulation);
    int64_t last = (attention.getBatch() - 1) * mask.getBatch() +
                   (attention.getHeads() - 1) * mask.getHead() +
                   (attention.getQueries() - 1) * mask.getRow() + attention.getKeys();
    touched.push_back({"mask", false, mask.getOperand(), element, last});
  }
  Type i64 = IntegerType::get(attention.getContext(), 64);
  if (AttentionDropoutAttr dropout = attention.getDropout())
    for (auto [name, operand] :
         {std::pair("seed", dropout.getSeed()), std::pair("step", dropout.getStep())})
      if (operand >= 0)
        touched.push_back({name, false, operand, i64, 1});
  if (gradient) {
    touched.append({view("dresult", false, gradient.getDresult(), false, valueWidth),
                    view("dquery", true, gradient.getDquery(), false, width),
                    view("dkey", true, gradient.getDkey(), true, width),
                    view("dvalue", true, gradient.getDvalue(), true, valueWidth)});
    if (gradient.getWorkspace() >= 0)
      touched.push_back({"workspace", true, gradient.getWorkspace(), accumulation,
                         attention.getBlocks().getWorkspace()});
  }
  return touched;
}

} // namespace

AttentionOperands countOperands(AttentionAttr attention) {
  AttentionOperands count;
  for (const Touched& each : touchedOperands(attention)) {
    int64_t& slots = each.isOut ? count.outs : count.ins;
    slots = std::max(slots, each.operand + 1);
  }
  return count;
}

namespace {

AttentionAttr with(AttentionAttr a, AttentionBlocksAttr blocks, AttentionDropoutAttr dropout) {
  return AttentionAttr::get(a.getContext(), a.getBatch(), a.getHeads(), a.getKeyHeads(),
                            a.getQueries(), a.getKeys(), a.getWidth(), a.getValueWidth(),
                            a.getElement(), a.getScale(), a.getCausal(), a.getQuery(), a.getKey(),
                            a.getValue(), a.getResult(), a.getLogSumExp(), a.getLargest(), blocks,
                            a.getMask(), dropout, a.getGradient());
}

} // namespace

AttentionAttr withoutStream(AttentionAttr a) {
  AttentionDropoutAttr dropout = a.getDropout();
  if (!dropout)
    return a;
  dropout =
      AttentionDropoutAttr::get(a.getContext(), dropout.getP(), /*stream=*/0, dropout.getSeed(),
                                dropout.getStep(), dropout.getGlobal(), dropout.getMultiple());
  return with(a, a.getBlocks(), dropout);
}

AttentionAttr withBlocks(AttentionAttr a, AttentionBlocksAttr blocks) {
  return with(a, blocks, a.getDropout());
}

FloatType AttentionAttr::getAccumulation() const {
  Builder builder(getContext());
  return getElement().isF64() ? FloatType(builder.getF64Type()) : FloatType(builder.getF32Type());
}

int64_t AttentionAttr::padded(int64_t width) const {
  const int64_t padding = getBlocks().getPadding();
  return padding == 0 ? width : static_cast<int64_t>(llvm::alignTo(width, padding));
}

int64_t AttentionAttr::getSumElements() const {
  return getBatch() * getKeyHeads() * getKeys() * (padded(getWidth()) + padded(getValueWidth()));
}

bool AttentionAttr::canSumInOuts() const {
  return getBlocks().getPadding() == 0 ||
         (getElement() == getAccumulation() && padded(getWidth()) == getWidth() &&
          padded(getValueWidth()) == getValueWidth());
}

bool AttentionAttr::readsOut(unsigned) const { return false; }

int64_t AttentionAttr::getUnits() const {
  return getGradient() ? getBatch() * getKeyHeads()
                       : getBatch() * getHeads() *
                             llvm::divideCeilSigned(getQueries(), getBlocks().getRows());
}

static LogicalResult verifyBlocks(CallOp call, AttentionAttr attention) {
  AttentionBlocksAttr blocks = attention.getBlocks();
  int64_t rows = blocks.getRows(), keys = blocks.getKeys(), padding = blocks.getPadding();
  constexpr int64_t philoxElements = 8;
  if (rows < 1 || keys < 1 || padding < 0 || blocks.getWorkspace() < 0)
    return call.emitOpError("(C3) blocks are of positive extents, found ") << blocks;
  if (rows % keys != 0 || (padding != 0 && rows % padding != 0))
    return call.emitOpError("(C3) blocks of ") << rows << " rows are no multiple of " << keys
                                               << " keys and of a padding of " << padding;
  if (keys % philoxElements != 0)
    return call.emitOpError("(C3) blocks of ")
           << keys << " keys are no multiple of " << philoxElements;
  AttentionGradientAttr gradient = attention.getGradient();
  int64_t workspace = blocks.getWorkspace(), needed = 0;
  if (gradient && (workspace > 0 || !attention.canSumInOuts()))
    needed = attention.getSumElements();
  if (workspace < needed || (!gradient && workspace > 0))
    return call.emitOpError("(C1) needs a workspace of ")
           << needed << " elements, found " << workspace;
  if (gradient && (workspace > 0) != (gradient.getWorkspace() >= 0))
    return call.emitOpError("(C1) has a workspace of ")
           << workspace << " elements, but its operand is " << gradient.getWorkspace();
  return success();
}

LogicalResult AttentionAttr::verifyCall(Operation* op) const {
  auto call = cast<CallOp>(op);
  for (int64_t extent : {getBatch(), getHeads(), getKeyHeads(), getQueries(), getKeys(), getWidth(),
                         getValueWidth()})
    if (extent < 1)
      return call.emitOpError("(C3) extents are positive, found ") << extent;
  if (!isa<FloatType>(getElement()))
    return call.emitOpError("(C1) attends over elements of type ") << getElement();
  if (getHeads() % getKeyHeads() != 0)
    return call.emitOpError("(C3) ")
           << getHeads() << " query heads are no multiple of " << getKeyHeads() << " key heads";
  if (getMask() && getMask().getFill() && !getMask().getBoolean())
    return call.emitOpError("(C1) fills with ") << getMask().getFill() << " beside a floating mask";
  if (!keepsLargest() && getLargest() >= 0)
    return call.emitOpError("(C1) has a largest score in operand ")
           << getLargest() << " without a mask of numbers";
  if (failed(verifyBlocks(call, *this)))
    return failure();
  if (AttentionDropoutAttr dropout = getDropout())
    if (dropout.getGlobal().size() != 4 || dropout.getMultiple() < 0)
      return call.emitOpError("(C1) drops elements of a tensor of rank 4, found rank ")
             << dropout.getGlobal().size() << " and multiple " << dropout.getMultiple();
  size_t scalars = getDropout() && getDropout().getMultiple() != 0 ? 1 : 0;
  AttentionOperands count = countOperands(*this);
  if (static_cast<int64_t>(call.getIns().size()) != count.ins ||
      static_cast<int64_t>(call.getOuts().size()) != count.outs ||
      call.getScalars().size() != scalars)
    return call.emitOpError("(C1) takes ")
           << count.ins << " ins, " << count.outs << " outs and " << scalars << " scalars";
  for (const Touched& each : touchedOperands(*this)) {
    if (each.operand < 0)
      return call.emitOpError("(C1) has no ") << each.name;
    Value value = each.isOut ? call.getOuts()[each.operand] : call.getIns()[each.operand];
    auto type = cast<ShapedType>(value.getType());
    if (type.getElementType() != each.element)
      return call.emitOpError("(C1) takes ")
             << each.name << " of type " << each.element << ", but its operand is " << type;
    if (each.elements > type.getNumElements())
      return call.emitOpError("(C1) touches ") << each.elements << " elements of " << each.name
                                               << ", which has " << type.getNumElements();
  }
  return success();
}

} // namespace titan::kernel
