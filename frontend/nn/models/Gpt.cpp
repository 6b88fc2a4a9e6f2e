// GPT-2's family (Radford et al., Language models are unsupervised multitask learners, 2019), with
// the names, layouts and initial weights of transformers' GPT2LMHeadModel.
#include "frontend/nn/models/Text.h"

#include <cmath>

namespace titan::nn {

static constexpr Option kOptions[] = {
    {"layers", OptionKind::Integer, "12", "blocks", 1},
    {"width", OptionKind::Integer, "768", "of the residual stream", 1},
    {"heads", OptionKind::Integer, "12", "of attention; they divide the width", 1},
    {"hidden", OptionKind::Integer, "0", "width between the two linear layers; 0: 4 x width"},
    {"vocab", OptionKind::Integer, "50257", "tokens", 2},
    {"length", OptionKind::Integer, "1024", "positions; model.dims.seq binds shorter sequences", 1},
    {"dropout", OptionKind::Real, "0", "of embeddings, probabilities and what blocks add"},
    {"epsilon", OptionKind::Real, "1e-5", "of the norms"},
    {"tied", OptionKind::Flag, "true", "the head is the table of tokens"},
};

namespace {

struct Sizes {
  int64_t layers, width, heads, hidden;
  double dropout, epsilon;

  NormOptions norm() const { return {.epsilon = epsilon}; }
  /// What adds to the residual stream starts smaller.
  LinearOptions matrix(bool adds = false) const {
    return {.layout = MatrixLayout::InOut,
            .weightInit =
                Init::normal(0, adds ? 0.02 / std::sqrt(2 * static_cast<double>(layers)) : 0.02)};
  }
};

Tensor selfAttention(const Scope& scope, Tensor x, const Sizes& sizes) {
  Tensor all = linear(scope.child("c_attn"), x, 3 * sizes.width, sizes.matrix());
  const auto heads = [&](int64_t part) {
    Tensor one = slice(scope, all, -1, part * sizes.width, sizes.width);
    return reshape(scope, one, {x.extent(0), x.extent(1), sizes.heads, sizes.width / sizes.heads});
  };
  Tensor y =
      attention(scope, heads(0), heads(1), heads(2), {.causal = true, .dropout = sizes.dropout});
  y = reshape(scope, y, x.shape());
  y = linear(scope.child("c_proj"), y, sizes.width, sizes.matrix(/*adds=*/true));
  return dropout(scope.child("resid_dropout"), y, sizes.dropout);
}

Tensor block(const Scope& scope, Tensor x, const Sizes& sizes) {
  Tensor normed = layerNorm(scope.child("ln_1"), x, sizes.norm());
  x = add(scope, selfAttention(scope.child("attn"), normed, sizes), x);
  const Scope mlp = scope.child("mlp");
  Tensor y = geluBlock(mlp, layerNorm(scope.child("ln_2"), x, sizes.norm()), sizes.hidden,
                       {.up = "c_fc",
                        .down = "c_proj",
                        .form = GeluForm::Tanh,
                        .upOptions = sizes.matrix(),
                        .downOptions = sizes.matrix(/*adds=*/true)});
  return add(scope, x, dropout(mlp.child("dropout"), y, sizes.dropout));
}

void build(Model& model, const OptionValues& options) {
  const int64_t width = options.integer("width"), heads = options.integer("heads"),
                hidden = options.integer("hidden"), positions = options.integer("length");
  if (width % heads != 0)
    return model.fail(fmt::format("heads = {} do not divide width = {}", heads, width));
  const Sizes sizes = {options.integer("layers"),
                       width,
                       heads,
                       hidden == 0 ? 4 * width : hidden,
                       options.real("dropout"),
                       options.real("epsilon")};
  const Scope root = model.root(), body = root.child("transformer");
  const bool tied = options.flag("tied");
  const Init init = Init::normal(0, 0.02);
  Tensor ids = tokenInput(model, positions);
  Tensor table = tokenTable(body.child("wte"), options.integer("vocab"), width, init, tied);
  Tensor places = body.child("wpe").parameter("weight", {positions, width}, init);
  Tensor x = add(body, lookUp(body.child("wte"), table, ids),
                 slice(body.child("wpe"), places, 0, 0, ids.extent(1)));
  x = dropout(body.child("drop"), x, sizes.dropout);
  for (int64_t i = 0; i < sizes.layers; ++i)
    x = block(body.child("h").child(i), x, sizes);
  x = layerNorm(body.child("ln_f"), x, sizes.norm());
  const Scope head = root.child("lm_head");
  model.output("logits", tied ? project(head, x, table)
                              : linear(head, x, options.integer("vocab"),
                                       {.bias = false, .weightInit = init}));
}

void suggest(Recipe& recipe, const OptionValues& options) {
  suggestForText(recipe, options, 6e-4, {"*.bias", "*.ln_*"});
}

} // namespace

const KnownModel gptModel = {"gpt", "GPT-2's family; the defaults are its smallest, 124M", kOptions,
                             build, suggest};

} // namespace titan::nn
