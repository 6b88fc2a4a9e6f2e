// titan-lower-absorb-views: attention reads and writes parts of larger tensors in place.
#include "compiler/Lower/Address.h"
#include "compiler/Lower/Passes.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace titan {

#define GEN_PASS_DEF_ABSORBVIEWS
#include "compiler/Lower/Passes.h.inc"

namespace {

using kernel::AttentionAttr;
using kernel::ViewAttr;
using lower::Linear;

ArrayRef<int64_t> shapeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getShape();
}

/// A kernel that moves elements and changes none.
bool isCopy(kernel::FusedOp op) {
  if (!op || op.getIns().size() != 1 || op.getOuts().size() != 1 || !op.getScalars().empty())
    return false;
  auto yield = cast<kernel::YieldOp>(op.getBlock().getTerminator());
  Value value = yield.getValues()[0];
  // Narrow floats are widened and narrowed again.
  if (auto narrow = value.getDefiningOp<arith::TruncFOp>())
    if (auto wide = narrow.getIn().getDefiningOp<arith::ExtFOp>())
      value = wide.getIn();
  return value == op.getBlock().getArgument(0) && value.getType() == yield.getValues()[0].getType();
}

/// [batch, row, head, width] of a call's tensor, row-major.
Linear wholeAddress(ArrayRef<int64_t> space) {
  Linear address{0, SmallVector<int64_t>(space.size(), 1)};
  for (int64_t d = static_cast<int64_t>(space.size()) - 2; d >= 0; --d)
    address.strides[d] = address.strides[d + 1] * space[d + 1];
  return address;
}

/// Where the elements that `copy` reads (or writes) at `address` of its other side are.
std::optional<Linear> follow(kernel::FusedOp copy, const Linear& address, ArrayRef<int64_t> space,
                             bool toOut) {
  AffineMap known = toOut ? copy.getInMap(0) : copy.getOutMap(0);
  AffineMap wanted = toOut ? copy.getOutMap(0) : copy.getInMap(0);
  Value from = toOut ? copy.getIns()[0] : copy.getOuts()[0];
  Value to = toOut ? copy.getOuts()[0] : copy.getIns()[0];
  // A copy of the front part alone has an identity map too, but says nothing about the rest.
  if (!known.isIdentity() || copy.getSpace() != shapeOf(from))
    return std::nullopt;
  std::optional<AffineMap> indices = lower::mapOf(address, space, shapeOf(from), copy.getContext());
  if (!indices)
    return std::nullopt;
  return lower::addressOf(wanted.compose(*indices), shapeOf(to));
}

bool isView(const Linear& address, ArrayRef<int64_t> space) {
  return (address.strides.back() == 1 || space.back() == 1) &&
         llvm::all_of(address.strides, [](int64_t stride) { return stride >= 0; });
}

ViewAttr toView(const Linear& address, int64_t operand, MLIRContext* context) {
  return ViewAttr::get(context, operand, address.constant, address.strides[0], address.strides[1],
                       address.strides[2]);
}

/// The views of a call in the attribute's order, and the attribute with others in their place.
struct Views {
  explicit Views(AttentionAttr attention) : attention(attention) {
    int64_t b = attention.getBatch(), t = attention.getQueries(), s = attention.getKeys();
    int64_t h = attention.getHeads(), g = attention.getKeyHeads();
    int64_t d = attention.getWidth(), e = attention.getValueWidth();
    auto add = [&](StringRef name, ViewAttr view, ArrayRef<int64_t> space, bool isOut) {
      views.push_back({name, view, SmallVector<int64_t>(space), isOut});
    };
    kernel::AttentionGradientAttr gradient = attention.getGradient();
    add("query", attention.getQuery(), {b, t, h, d}, false);
    add("key", attention.getKey(), {b, s, g, d}, false);
    add("value", attention.getValue(), {b, s, g, e}, false);
    add("result", attention.getResult(), {b, t, h, e}, !gradient);
    if (gradient) {
      add("dresult", gradient.getDresult(), {b, t, h, e}, false);
      add("dquery", gradient.getDquery(), {b, t, h, d}, true);
      add("dkey", gradient.getDkey(), {b, s, g, d}, true);
      add("dvalue", gradient.getDvalue(), {b, s, g, e}, true);
    }
  }

  /// `inAt` and `outAt` are the new numbers of the operands that are no views.
  AttentionAttr rebuild(ArrayRef<int64_t> inAt, ArrayRef<int64_t> outAt) const {
    kernel::AttentionGradientAttr gradient = attention.getGradient();
    auto in = [&](int64_t operand) { return operand < 0 ? operand : inAt[operand]; };
    auto out = [&](int64_t operand) { return operand < 0 ? operand : outAt[operand]; };
    MLIRContext* context = attention.getContext();
    kernel::AttentionMaskAttr mask = attention.getMask();
    if (mask)
      mask = kernel::AttentionMaskAttr::get(context, in(mask.getOperand()), mask.getBoolean(),
                                            mask.getBatch(), mask.getHead(), mask.getRow(),
                                            mask.getFill());
    kernel::AttentionDropoutAttr dropout = attention.getDropout();
    if (dropout)
      dropout = kernel::AttentionDropoutAttr::get(context, dropout.getP(), dropout.getStream(),
                                                  in(dropout.getSeed()), in(dropout.getStep()),
                                                  dropout.getGlobal(), dropout.getMultiple());
    int64_t logSumExp = gradient ? in(attention.getLogSumExp()) : out(attention.getLogSumExp());
    int64_t largest = gradient ? in(attention.getLargest()) : out(attention.getLargest());
    if (gradient)
      gradient =
          kernel::AttentionGradientAttr::get(context, views[4].view, views[5].view, views[6].view,
                                             views[7].view, out(gradient.getWorkspace()));
    return AttentionAttr::get(context, attention.getBatch(), attention.getHeads(),
                              attention.getKeyHeads(), attention.getQueries(), attention.getKeys(),
                              attention.getWidth(), attention.getValueWidth(),
                              attention.getElement(), attention.getScale(), attention.getCausal(),
                              views[0].view, views[1].view, views[2].view, views[3].view, logSumExp,
                              largest, attention.getBlocks(), mask, dropout, gradient);
  }

  struct Entry {
    StringRef name;
    ViewAttr view;
    SmallVector<int64_t> space;
    bool isOut;
  };
  AttentionAttr attention;
  SmallVector<Entry> views;
};

/// One call while its operands are exchanged.
class Absorption {
public:
  Absorption(kernel::CallOp call, AttentionAttr attention)
      : call(call), views(attention), ins(call.getIns()), outs(call.getOuts()),
        results(call.getResults()) {}

  void run() {
    for (Views::Entry& entry : views.views)
      if (!entry.isOut)
        absorbIn(entry);
    collectLinks();
    for (Link& link : links)
      absorbChain(link);
    if (absorbed.empty())
      return;
    rebuild();
  }

private:
  /// A copy of one of the call's results into a part of another tensor.
  struct Link {
    Views::Entry* entry;
    kernel::FusedOp copy;
    Linear address; ///< in the copy's out
  };

  void missed(const Views::Entry& entry, StringRef reason) {
    remark::missed(call.getLoc(), remark::RemarkOpts::name("absorb-views").category("lower"))
        << remark::add("attention of '{0}' keeps the copy of {1}: {2}", ir::describePlace(call),
                       entry.name, reason);
  }

  void absorbIn(Views::Entry& entry) {
    ViewAttr view = entry.view;
    Linear address{view.getOffset(), {view.getBatch(), view.getRow(), view.getHead(), 1}};
    Value source = lower::sourceOf(call.getIns()[view.getOperand()]);
    std::optional<std::pair<Value, Linear>> found;
    while (auto copy = source.getDefiningOp<kernel::FusedOp>()) {
      if (!isCopy(copy))
        break;
      std::optional<Linear> before = follow(copy, address, entry.space, /*toOut=*/false);
      if (!before) {
        missed(entry, "its elements have no strides there");
        break;
      }
      address = *before;
      source = lower::sourceOf(copy.getIns()[0]);
      if (isView(address, entry.space))
        found = {source, address};
    }
    if (!found) {
      if (!isView(address, entry.space))
        missed(entry, "the elements of a head are not contiguous");
      return;
    }
    entry.view = toView(found->second, static_cast<int64_t>(ins.size()), call.getContext());
    ins.push_back(found->first);
    absorbed.push_back(entry.name);
  }

  void collectLinks() {
    for (Views::Entry& entry : views.views) {
      if (!entry.isOut)
        continue;
      Value value = call.getResult(entry.view.getOperand());
      while (value.hasOneUse() && isa<kernel::CastShapeOp>(*value.user_begin()))
        value = (*value.user_begin())->getResult(0);
      auto copy =
          value.hasOneUse() ? dyn_cast<kernel::FusedOp>(*value.user_begin()) : kernel::FusedOp();
      if (!copy || !isCopy(copy) || copy.getIns()[0] != value)
        continue;
      std::optional<Linear> address =
          follow(copy, wholeAddress(entry.space), entry.space, /*toOut=*/true);
      if (address && isView(*address, entry.space))
        links.push_back({&entry, copy, *address});
      else
        missed(entry, "it has no strides in the tensor that it is copied to");
    }
  }

  /// If `first` starts a new tensor, that tensor becomes an out, for it and the copies that go on.
  void absorbChain(Link& first) {
    auto empty = first.copy.getOuts()[0].getDefiningOp<kernel::EmptyOp>();
    if (!empty || !empty->hasOneUse())
      return;
    auto operand = static_cast<int64_t>(outs.size());
    kernel::FusedOp last;
    for (Link* link = &first; link; link = next(last)) {
      link->entry->view = toView(link->address, operand, call.getContext());
      absorbed.push_back(link->entry->name);
      last = link->copy;
    }
    outs.push_back(empty.getResult());
    results.push_back(last->getResult(0));
  }

  Link* next(kernel::FusedOp last) {
    Value result = last->getResult(0);
    if (result.hasOneUse())
      for (Link& link : links)
        if (link.copy.getOuts()[0] == result)
          return &link;
    return nullptr;
  }

  void rebuild() {
    llvm::SetVector<int64_t> usedIns, usedOuts;
    AttentionAttr attention = views.attention;
    auto useBesides = [&](llvm::SetVector<int64_t>& used, int64_t operand) {
      if (operand >= 0)
        used.insert(operand);
    };
    for (const Views::Entry& entry : views.views)
      (entry.isOut ? usedOuts : usedIns).insert(entry.view.getOperand());
    kernel::AttentionGradientAttr gradient = attention.getGradient();
    useBesides(gradient ? usedIns : usedOuts, attention.getLogSumExp());
    useBesides(gradient ? usedIns : usedOuts, attention.getLargest());
    if (kernel::AttentionMaskAttr mask = attention.getMask())
      useBesides(usedIns, mask.getOperand());
    if (kernel::AttentionDropoutAttr dropout = attention.getDropout()) {
      useBesides(usedIns, dropout.getSeed());
      useBesides(usedIns, dropout.getStep());
    }
    if (gradient)
      useBesides(usedOuts, gradient.getWorkspace());

    OpBuilder builder(call);
    SmallVector<int64_t> inAt(ins.size(), -1), outAt(outs.size(), -1);
    SmallVector<Value> newIns, newOuts;
    for (int64_t i : usedIns) {
      // Views of one tensor share it.
      auto known = llvm::find(newIns, ins[i]);
      inAt[i] = known - newIns.begin();
      if (known == newIns.end())
        newIns.push_back(ins[i]);
    }
    for (int64_t i : usedOuts) {
      outAt[i] = static_cast<int64_t>(newOuts.size());
      // The tensor of a concatenation may be made after the call.
      newOuts.push_back(kernel::EmptyOp::create(builder, call.getLoc(), outs[i].getType()));
    }
    for (Views::Entry& entry : views.views) {
      ViewAttr view = entry.view;
      ArrayRef<int64_t> at = entry.isOut ? outAt : inAt;
      entry.view = ViewAttr::get(view.getContext(), at[view.getOperand()], view.getOffset(),
                                 view.getBatch(), view.getRow(), view.getHead());
    }
    auto replacement = kernel::CallOp::create(
        builder, call.getLoc(), TypeRange(ValueRange(newOuts)), newIns, newOuts, call.getScalars(),
        views.rebuild(inAt, outAt), call.getPathAttr(), call.getPhaseAttr());
    for (int64_t i : usedOuts)
      results[i].replaceAllUsesWith(replacement.getResult(outAt[i]));
    remark::passed(call.getLoc(), remark::RemarkOpts::name("absorb-views").category("lower"))
        << remark::add("attention of '{0}' has {1} in place", ir::describePlace(call),
                       llvm::join(absorbed, ", "));
  }

  kernel::CallOp call;
  Views views;
  SmallVector<Value> ins, outs, results; ///< the call's, then those that views came upon
  SmallVector<Link> links;
  SmallVector<StringRef> absorbed;
};

struct AbsorbViews : impl::AbsorbViewsBase<AbsorbViews> {
  void runOnOperation() override {
    SmallVector<kernel::CallOp> calls;
    getOperation().walk([&](kernel::CallOp call) { calls.push_back(call); });
    for (kernel::CallOp call : calls)
      if (auto attention = dyn_cast<AttentionAttr>(call.getRoutine()))
        Absorption(call, attention).run();
    // The copies that nothing reads now, from the last on; what is in an op before the op.
    SmallVector<Operation*> ops;
    getOperation().walk<WalkOrder::PreOrder>([&](Operation* op) { ops.push_back(op); });
    for (Operation* op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }
};

} // namespace
} // namespace titan
