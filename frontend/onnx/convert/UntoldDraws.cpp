#include "frontend/onnx/convert/UntoldDraws.h"

using namespace mlir;

namespace titan::frontend {
namespace {

/// Is dimension `dim` of `value`, or what ops make of it, gone before it meets a value of samples?
bool vanishes(Value value, int64_t dim, llvm::function_ref<bool(Value)> isOfSamples) {
  bool isGone = false;
  using Place = std::pair<Value, int64_t>;
  SmallVector<Place> open{{value, dim}};
  llvm::DenseSet<Place> seen{open.front()};
  while (!open.empty()) {
    auto [at, along] = open.pop_back_val();
    for (OpOperand& use : at.getUses()) {
      auto user = dyn_cast<ir::ShardableOpInterface>(use.getOwner());
      if (!user || llvm::any_of(user->getOperands(), isOfSamples))
        return false;
      const ir::ShardingRule rule = user.getShardingRule();
      const auto& factors = rule.operands[use.getOperandNumber()][along];
      if (factors.empty())
        return false;
      bool isKept = false;
      for (auto [i, result] : llvm::enumerate(user->getResults())) {
        const int64_t d = ir::ShardingRule::findDim(rule.results[i], factors.front());
        isKept |= d >= 0;
        if (d >= 0 && seen.insert({result, d}).second)
          open.emplace_back(result, d);
      }
      isGone |= !isKept;
    }
  }
  return isGone;
}

} // namespace

ir::RandomOp findUntoldDraw(func::FuncOp function, int64_t batch,
                            llvm::function_ref<bool(Value)> isOfSamples) {
  for (auto draw : function.getBody().front().getOps<ir::RandomOp>())
    for (auto [d, extent] : llvm::enumerate(ir::tensorType(draw.getResult()).getShape()))
      if (batch > 1 && extent == batch &&
          vanishes(draw.getResult(), static_cast<int64_t>(d), isOfSamples))
        return draw;
  return {};
}

} // namespace titan::frontend
