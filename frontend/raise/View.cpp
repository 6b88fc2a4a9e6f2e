#include "frontend/raise/View.h"

#include "frontend/raise/Layout.h"

using namespace mlir;

namespace titan::frontend {

int64_t View::extent(int64_t role) const {
  const auto* it = llvm::find(roles, role);
  return it == roles.end() ? 1 : ir::tensorType(value).getDimSize(it - roles.begin());
}

namespace {

View throughTranspose(const View& view, ir::TransposeOp op) {
  View result{op.getOperand(), SmallVector<int64_t>(view.roles.size())};
  for (auto [i, d] : llvm::enumerate(op.getPermutation()))
    result.roles[d] = view.roles[i];
  return result;
}

View throughBroadcast(const View& view, ir::BroadcastOp op) {
  View result{op.getOperand(), {}};
  for (int64_t d : op.getDims())
    result.roles.push_back(view.roles[d]);
  return result;
}

/// A reshape that only adds and drops dimensions of extent 1.
std::optional<View> throughUnits(const View& view, ir::ReshapeOp op) {
  ArrayRef<int64_t> to = op.getType().getShape();
  ArrayRef<int64_t> from = ir::tensorType(op.getOperand()).getShape();
  View result{op.getOperand(), {}};
  size_t next = 0;
  auto skipUnits = [&] {
    while (next < to.size() && to[next] == 1)
      ++next;
  };
  for (int64_t extent : from) {
    if (extent == 1) {
      result.roles.push_back(View::kUnit);
      continue;
    }
    skipUnits();
    if (next == to.size() || to[next] != extent)
      return std::nullopt;
    result.roles.push_back(view.roles[next++]);
  }
  skipUnits();
  return next == to.size() ? std::optional(result) : std::nullopt;
}

} // namespace

View withoutOrder(View view) {
  while (true) {
    if (auto transpose = view.value.getDefiningOp<ir::TransposeOp>()) {
      view = throughTranspose(view, transpose);
      continue;
    }
    auto reshape = view.value.getDefiningOp<ir::ReshapeOp>();
    std::optional<View> inner = reshape ? throughUnits(view, reshape) : std::nullopt;
    if (!inner)
      return view;
    view = *inner;
  }
}

std::optional<View> reordered(const View& view, Operation* op) {
  if (auto transpose = dyn_cast<ir::TransposeOp>(op)) {
    View result{transpose.getResult(), {}};
    for (int64_t d : transpose.getPermutation())
      result.roles.push_back(view.roles[d]);
    return result;
  }
  auto reshape = dyn_cast<ir::ReshapeOp>(op);
  if (!reshape)
    return std::nullopt;
  // Number the result's dimensions to see which of them the operand has.
  View numbered{reshape.getResult(),
                llvm::to_vector(llvm::seq<int64_t>(0, reshape.getType().getRank()))};
  std::optional<View> inner = throughUnits(numbered, reshape);
  if (!inner)
    return std::nullopt;
  View result{reshape.getResult(), SmallVector<int64_t>(numbered.roles.size(), View::kUnit)};
  for (auto [d, position] : llvm::enumerate(inner->roles))
    if (position != View::kUnit)
      result.roles[position] = view.roles[d];
  return result;
}

View withoutMovement(View view) {
  while (Operation* op = view.value.getDefiningOp()) {
    if (auto transpose = dyn_cast<ir::TransposeOp>(op)) {
      view = throughTranspose(view, transpose);
    } else if (auto broadcast = dyn_cast<ir::BroadcastOp>(op)) {
      view = throughBroadcast(view, broadcast);
    } else if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
      std::optional<View> inner = throughUnits(view, reshape);
      if (!inner)
        break;
      view = *inner;
    } else {
      break;
    }
  }
  return view;
}

View withoutRepetition(const View& view, int64_t role) {
  View inner = withoutOrder(view);
  // All heads repeat one: a broadcast without a merge.
  constexpr int64_t kCopy = -2;
  if (auto merge = inner.value.getDefiningOp<ir::ReshapeOp>()) {
    auto groups =
        matchMerge(ir::tensorType(merge.getOperand()).getShape(), merge.getType().getShape());
    if (!groups)
      return view;
    View split{merge.getOperand(),
               SmallVector<int64_t>(ir::tensorType(merge.getOperand()).getRank(), View::kUnit)};
    for (auto [d, group] : llvm::enumerate(*groups)) {
      if (group.size() > 2 || (group.size() == 2 && inner.roles[d] != role))
        return view;
      if (!group.empty())
        split.roles[group.front()] = inner.roles[d];
      if (group.size() == 2)
        split.roles[group.back()] = kCopy;
    }
    inner = split;
  }
  inner = withoutOrder(inner);
  auto broadcast = inner.value.getDefiningOp<ir::BroadcastOp>();
  if (!broadcast)
    return view;
  View source = throughBroadcast(inner, broadcast);
  // Everything but the copies must come from the operand.
  for (auto [d, own] : llvm::enumerate(inner.roles)) {
    bool isCopy = own == kCopy || (own == role && !inner.has(kCopy));
    if (ir::tensorType(inner.value).getDimSize(d) != 1 && source.has(own) == isCopy)
      return view;
  }
  return source;
}

Value arranged(const ir::TensorBuilder& b, const View& view, ArrayRef<int64_t> roles) {
  SmallVector<int64_t> kept, order, shape;
  SmallVector<int64_t> named;
  for (auto [d, role] : llvm::enumerate(view.roles))
    if (llvm::is_contained(roles, role)) {
      kept.push_back(ir::tensorType(view.value).getDimSize(d));
      named.push_back(role);
    }
  for (int64_t role : roles) {
    shape.push_back(view.extent(role));
    if (view.has(role))
      order.push_back(llvm::find(named, role) - named.begin());
  }
  return reshaped(b, transposed(b, reshaped(b, view.value, kept), order), shape);
}

} // namespace titan::frontend
