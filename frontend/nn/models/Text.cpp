#include "frontend/nn/models/Text.h"

namespace titan::nn {

Tensor tokenInput(Model& model, int64_t positions) {
  const int64_t length = model.dim("seq", positions);
  if (length <= positions)
    return model.input("input_ids", DType::I64, {length});
  model.fail(
      fmt::format("model.dims: seq = {} is more than length = {} positions", length, positions));
  return {};
}

Tensor tokenTable(const Scope& scope, int64_t rows, int64_t width, Init init, bool tied) {
  std::vector<std::string> aliases;
  if (tied)
    aliases.push_back("lm_head.weight");
  return scope.parameter("weight", {rows, width}, init, aliases);
}

void suggestForText(Recipe& recipe, const OptionValues& options, double lr,
                    std::vector<std::string> noDecay) {
  recipe.optimizer.lr = lr;
  recipe.optimizer.beta2 = 0.95;
  recipe.optimizer.weightDecay = 0.1;
  recipe.optimizer.noDecay = std::move(noDecay);
  recipe.optimizer.clipNorm = 1;
  recipe.schedule.kind = "cosine";
  recipe.schedule.warmupSteps = 100;
  recipe.schedule.minLrRatio = 0.1;
  recipe.data.train = {options.integer("vocab") == 256 ? "train.txt" : "train.bin"};
}

} // namespace titan::nn
