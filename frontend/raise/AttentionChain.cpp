#include "frontend/raise/AttentionChain.h"

#include "frontend/raise/Matching.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace titan::frontend {

bool followScores(const View& written, double after, Scores& scores) {
  // Each sum is two ways to look, so that sums of a value with itself would take forever.
  constexpr unsigned kMostSteps = 256;
  if (++scores.steps > kMostSteps)
    return false;
  View view = withoutOrder(written);
  Operation* op = view.value.getDefiningOp();
  if (!op)
    return false;
  if (auto product = dyn_cast<ir::ContractOp>(op)) {
    scores.product = view;
    scores.scale = after;
    return !product.getAcc();
  }
  auto follow = [&](Value next, double factor) {
    size_t found = scores.terms.size();
    if (followScores({next, view.roles}, factor, scores))
      return true;
    scores.terms.truncate(found);
    return false;
  };
  auto term = [&](MaskTerm term) {
    scores.terms.push_back(std::move(term));
    return true;
  };
  return llvm::TypeSwitch<Operation*, bool>(op)
      .Case<ir::ConvertOp>([&](ir::ConvertOp convert) {
        auto from = ir::tensorType(convert.getOperand()).getElementType();
        return isa<FloatType>(from) && follow(convert.getOperand(), after);
      })
      .Case<ir::MulOp>([&](ir::MulOp mul) {
        for (auto [x, c] : {std::pair(mul.getLhs(), mul.getRhs()), {mul.getRhs(), mul.getLhs()}})
          if (std::optional<double> factor = splatOf(c); factor && *factor > 0)
            return follow(x, after * *factor);
        // A factor for each head or query: with masks inside it would scale them too.
        for (auto [x, c] : {std::pair(mul.getLhs(), mul.getRhs()), {mul.getRhs(), mul.getLhs()}})
          if (c.getDefiningOp<ir::BroadcastOp>() && follow(x, after)) {
            scores.factors.push_back({c, view.roles});
            return scores.terms.empty();
          }
        return false;
      })
      .Case<ir::DivOp>([&](ir::DivOp div) {
        std::optional<double> divisor = splatOf(div.getRhs());
        return divisor && *divisor > 0 && follow(div.getLhs(), after / *divisor);
      })
      .Case<ir::MaxOp>([&](ir::MaxOp max) {
        // A clamp at the smallest number, so that sums of masks are not -inf.
        for (auto [x, c] : {std::pair(max.getLhs(), max.getRhs()), {max.getRhs(), max.getLhs()}})
          if (splatOf(c).value_or(0) <= -1e30)
            return follow(x, after);
        return false;
      })
      .Case<ir::AddOp>([&](ir::AddOp add) {
        for (auto [x, mask] : {std::pair(add.getLhs(), add.getRhs()), {add.getRhs(), add.getLhs()}})
          if (follow(x, after))
            return term({MaskTerm::Kind::Add, {mask, view.roles}, after, true, 0});
        return false;
      })
      .Case<ir::SelectOp>([&](ir::SelectOp select) {
        for (auto [x, filled, keeps] : {std::tuple(select.getOnTrue(), select.getOnFalse(), true),
                                        {select.getOnFalse(), select.getOnTrue(), false}}) {
          std::optional<double> fill = splatOf(filled);
          if (fill && *fill <= -1e4 && follow(x, after))
            return term({MaskTerm::Kind::Fill,
                         {select.getCondition(), view.roles},
                         1,
                         keeps,
                         *fill * after});
        }
        return false;
      })
      .Default([](Operation*) { return false; });
}

/// select(p != p, 0, p), which Hugging Face's models write: a query without keys attends to
/// nothing.
static Value throughNanGuard(Value value) {
  ir::SelectOp guard;
  for (Operation* user : value.getUsers())
    if (auto select = dyn_cast<ir::SelectOp>(user))
      guard = select;
  if (!guard || guard.getOnFalse() != value || splatOf(guard.getOnTrue()) != 0.0)
    return {};
  auto isNan = guard.getCondition().getDefiningOp<ir::CompareOp>();
  if (!isNan || isNan.getPredicate() != ir::ComparePredicate::NE || isNan.getLhs() != value ||
      isNan.getRhs() != value || !isNan->hasOneUse())
    return {};
  for (Operation* user : value.getUsers())
    if (user != guard && user != isNan)
      return {};
  return guard.getResult();
}

Probabilities followProbabilities(View view) {
  Probabilities found;
  while (true) {
    if (Value guarded = throughNanGuard(view.value)) {
      view.value = guarded;
      continue;
    }
    if (!view.value.hasOneUse()) {
      found.problem = "its probabilities have another use";
      return found;
    }
    Operation* user = *view.value.getUsers().begin();
    if (auto contract = dyn_cast<ir::ContractOp>(user)) {
      found.product = contract;
      found.isLhs = contract.getLhs() == view.value;
      found.view = view;
      return found;
    }
    if (std::optional<View> moved = reordered(view, user)) {
      view = *moved;
      continue;
    }
    if (auto dropout = dyn_cast<ir::DropoutOp>(user);
        dropout && !found.dropout && dropout.getShared().empty()) {
      found.dropout = dropout;
      found.dropoutRoles = view.roles;
    } else if (!isa<ir::ConvertOp>(user)) {
      found.problem = (Twine(user->getName().getStringRef()) +
                       " stands between its probabilities and the values")
                          .str();
      return found;
    }
    view.value = user->getResult(0);
  }
}

} // namespace titan::frontend
