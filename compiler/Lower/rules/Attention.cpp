// Lowering of titan.attention and its gradient: routines over contiguous operands. What slices and
// joins them is absorbed later (AbsorbViews.cpp).
#include "compiler/Lower/Rules.h"

#include <limits>

using namespace mlir;

namespace titan::lower {

namespace {

/// A whole operand [batch, row, head, width].
kernel::ViewAttr wholeView(Value tensor, int64_t operand) {
  ArrayRef<int64_t> shape = tensorType(tensor).getShape();
  int64_t row = shape[2] * shape[3];
  return kernel::ViewAttr::get(tensor.getContext(), operand, 0, shape[1] * row, row, shape[3]);
}

/// Strides of a mask in which dimensions of extent 1 are broadcast.
kernel::AttentionMaskAttr maskView(Value mask, FloatAttr fill, int64_t operand) {
  RankedTensorType type = tensorType(mask);
  ArrayRef<int64_t> shape = type.getShape();
  int64_t row = shape[3], head = row * shape[2], batch = head * shape[1];
  return kernel::AttentionMaskAttr::get(
      mask.getContext(), operand, type.getElementType().isInteger(1), shape[0] > 1 ? batch : 0,
      shape[1] > 1 ? head : 0, shape[2] > 1 ? row : 0, fill);
}

/// Operands as they are gathered, and the parameters that forward and backward share.
template <typename Op> struct Routine {
  Routine(Op op, LoweringBuilder& l) : op(op), l(l) {
    queryShape = tensorType(op.getQuery()).getShape();
    valueShape = tensorType(op.getValue()).getShape();
    query = wholeView(op.getQuery(), addIn(op.getQuery()));
    key = wholeView(op.getKey(), addIn(op.getKey()));
    value = wholeView(op.getValue(), addIn(op.getValue()));
  }

  int64_t addIn(Value in) {
    ins.push_back(in);
    return static_cast<int64_t>(ins.size()) - 1;
  }
  int64_t addOut(RankedTensorType type) {
    outs.push_back(l.empty(type));
    return static_cast<int64_t>(outs.size()) - 1;
  }

  kernel::AttentionDropoutAttr dropout() {
    double p = op.getP().convertToDouble();
    if (p == 0)
      return {};
    SmallVector<int64_t> global = {queryShape[0], queryShape[2], queryShape[1], valueShape[1]};
    int64_t multiple = 0;
    if (std::optional<ir::WindowAttr> window = op.getWindow()) {
      global.assign(window->getGlobal().begin(), window->getGlobal().end());
      multiple = op.getBase() ? window->getMultiple() : 0;
    }
    if (op.getBase())
      scalars.push_back(op.getBase());
    int64_t seed = op.getSeed() ? addIn(op.getSeed()) : -1;
    int64_t step = op.getStep() ? addIn(op.getStep()) : -1;
    return kernel::AttentionDropoutAttr::get(l.context, l.builder.getF64FloatAttr(p),
                                             static_cast<int64_t>(op.getStream()), seed, step,
                                             global, multiple);
  }

  /// The machine's blocks. A workspace is not known before the attribute is.
  kernel::AttentionBlocksAttr blocks(bool isBackward, int64_t workspace = 0) {
    const MachineModel& m = l.machine;
    int64_t width = std::max(queryShape[3], valueShape[3]);
    bool isWide = width > (isBackward ? m.attentionBackwardWidth : m.attentionForwardWidth);
    int64_t rows = isWide ? m.attentionRowsOfWide : m.attentionRows;
    return kernel::AttentionBlocksAttr::get(l.context, rows, std::min(rows, m.attentionKeys),
                                            m.attentionPadding, workspace);
  }

  kernel::AttentionAttr attribute(kernel::ViewAttr result, int64_t logSumExp, int64_t largest,
                                  kernel::AttentionBlocksAttr blocks,
                                  kernel::AttentionMaskAttr mask,
                                  kernel::AttentionDropoutAttr dropout,
                                  kernel::AttentionGradientAttr gradient) {
    return kernel::AttentionAttr::get(
        l.context, queryShape[0], queryShape[2], valueShape[2], queryShape[1], valueShape[1],
        queryShape[3], valueShape[3], tensorType(op.getQuery()).getElementType(),
        l.builder.getF64FloatAttr(op.getScale().convertToDouble()), op.getCausal(), query, key,
        value, result, logSumExp, largest, blocks, mask, dropout, gradient);
  }

  kernel::AttentionMaskAttr mask() {
    if (Value mask = op.getMask())
      return maskView(mask, op.getFillAttr(), addIn(mask));
    return {};
  }

  ValueRange call(kernel::AttentionAttr attention) {
    return kernel::CallOp::create(l.builder, l.loc, TypeRange(ValueRange(outs)), ins, outs, scalars,
                                  attention, l.path, l.phase)
        .getResults();
  }

  Op op;
  LoweringBuilder& l;
  ArrayRef<int64_t> queryShape, valueShape;
  kernel::ViewAttr query, key, value;
  SmallVector<Value> ins, outs, scalars;
};

Value filled(LoweringBuilder& l, RankedTensorType type, double value) {
  return l.elementwise(type, {}, [&](Body& b, ValueRange) {
    return b.constant(Body::computeType(type.getElementType()), value);
  });
}

bool isEmpty(ValueRange tensors) {
  return llvm::any_of(tensors,
                      [](Value tensor) { return tensorType(tensor).getNumElements() == 0; });
}

struct Rules {
  static LogicalResult lower(ir::AttentionOp op, LoweringBuilder& l) {
    RankedTensorType resultType = tensorType(op.getResult());
    RankedTensorType logSumExpType = tensorType(op.getLogSumExp());
    if (tensorType(op.getKey()).getDimSize(1) == 0) { // nothing to attend to
      SmallVector<Value> results = {
          filled(l, resultType, 0),
          filled(l, logSumExpType, -std::numeric_limits<double>::infinity())};
      if (op.getLargest())
        results.push_back(filled(l, logSumExpType, 0));
      l.replace(results);
      return success();
    }
    if (isEmpty({op.getQuery(), op.getKey(), op.getValue()}))
      return l.refuse("an operand has no elements");
    Routine<ir::AttentionOp> routine(op, l);
    kernel::ViewAttr result = wholeView(op.getResult(), routine.addOut(resultType));
    int64_t logSumExp = routine.addOut(logSumExpType);
    int64_t largest = op.getLargest() ? routine.addOut(logSumExpType) : -1;
    kernel::AttentionMaskAttr mask = routine.mask();
    l.replace(routine.call(routine.attribute(result, logSumExp, largest, routine.blocks(false),
                                             mask, routine.dropout(), {})));
    return success();
  }

  static LogicalResult lower(ir::AttentionGradOp op, LoweringBuilder& l) {
    SmallVector<RankedTensorType> types =
        llvm::map_to_vector(op->getResults(), [](Value result) { return tensorType(result); });
    if (isEmpty({op.getQuery(), op.getKey(), op.getValue()})) {
      l.replace(llvm::map_to_vector(types, [&](auto type) { return filled(l, type, 0); }));
      return success();
    }
    Routine<ir::AttentionGradOp> routine(op, l);
    kernel::ViewAttr result = wholeView(op.getResult(), routine.addIn(op.getResult()));
    kernel::ViewAttr dresult = wholeView(op.getDresult(), routine.addIn(op.getDresult()));
    int64_t logSumExp = routine.addIn(op.getLogSumExp());
    int64_t largest = op.getLargest() ? routine.addIn(op.getLargest()) : -1;
    SmallVector<kernel::ViewAttr> adjoints;
    for (auto [value, type] : llvm::zip_equal(op->getResults(), types))
      adjoints.push_back(wholeView(value, routine.addOut(type)));
    kernel::AttentionMaskAttr mask = routine.mask();
    kernel::AttentionDropoutAttr dropout = routine.dropout();
    auto gradient = [&](int64_t workspace) {
      return kernel::AttentionGradientAttr::get(l.context, dresult, adjoints[0], adjoints[1],
                                                adjoints[2], workspace);
    };
    auto attribute = [&](int64_t elements, int64_t workspace) {
      return routine.attribute(result, logSumExp, largest, routine.blocks(true, elements), mask,
                               dropout, gradient(workspace));
    };
    kernel::AttentionAttr attention = attribute(0, -1);
    if (!attention.canSumInOuts()) {
      int64_t elements = attention.getSumElements();
      int64_t workspace =
          routine.addOut(RankedTensorType::get({elements}, attention.getAccumulation()));
      attention = attribute(elements, workspace);
    }
    l.replace(routine.call(attention).take_front(types.size()));
    return success();
  }
};

} // namespace

void attachAttentionRules(MLIRContext* context) {
  attachRules<Rules, ir::AttentionOp, ir::AttentionGradOp>(context);
}

} // namespace titan::lower
