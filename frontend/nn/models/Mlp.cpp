// Linear layers with a function between them.
#include "frontend/nn/Layers.h"
#include "frontend/nn/Models.h"

#include <cmath>

namespace titan::nn {

static constexpr Option kOptions[] = {
    {"inputs", OptionKind::Integer, "784", "of the first layer", 1},
    {"width", OptionKind::Integer, "128", "of the layers between", 1},
    {"layers", OptionKind::Integer, "2", "linear layers", 1},
    {"outputs", OptionKind::Integer, "10", "classes, or values", 1},
    {"activation", OptionKind::Word, "relu", "between two layers", 0, "relu|gelu|tanh|silu"},
    {"dropout", OptionKind::Real, "0", "behind each activation"},
};

namespace {

Tensor activate(const Scope& scope, Tensor x, const std::string& name) {
  if (name == "gelu")
    return gelu(scope, x);
  if (name == "tanh")
    return tanh(scope, x);
  return name == "silu" ? silu(scope, x) : relu(scope, x);
}

/// As torch.nn.Linear draws both.
LinearOptions drawn(int64_t inputs) {
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  return {.weightInit = Init::uniform(-bound, bound), .biasInit = Init::uniform(-bound, bound)};
}

void build(Model& model, const OptionValues& options) {
  const Scope root = model.root();
  const int64_t layers = options.integer("layers");
  Tensor x = model.input("x", DType::F32, {options.integer("inputs")});
  for (int64_t i = 1; i <= layers; ++i) {
    const bool last = i == layers;
    x = linear(root.child(fmt::format("fc{}", i)), x, options.integer(last ? "outputs" : "width"),
               drawn(x.extent(-1)));
    if (!last)
      x = dropout(root, activate(root, x, options.text("activation")), options.real("dropout"));
  }
  model.output("logits", x);
}

void suggest(Recipe& recipe, const OptionValues& options) {
  recipe.loss.kind = options.integer("outputs") == 1 ? "mse" : "cross_entropy";
  recipe.data.train = {"train.npz"};
}

} // namespace

const KnownModel mlpModel = {"mlp", "linear layers with a function between them", kOptions, build,
                             suggest};

} // namespace titan::nn
