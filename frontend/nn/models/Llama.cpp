// Llama's family (Touvron et al., arXiv:2302.13971; Grattafiori et al., arXiv:2407.21783), with the
// names, layouts and initial weights of transformers' LlamaForCausalLM. Positions are not scaled.
#include "frontend/nn/models/Text.h"

namespace titan::nn {

static constexpr Option kOptions[] = {
    {"layers", OptionKind::Integer, "16", "blocks", 1},
    {"width", OptionKind::Integer, "2048", "of the residual stream", 1},
    {"heads", OptionKind::Integer, "32", "of queries; they divide the width", 1},
    {"groups", OptionKind::Integer, "8", "heads of keys and values; they divide the heads", 1},
    {"hidden", OptionKind::Integer, "8192", "width between the linear layers of a block", 1},
    {"vocab", OptionKind::Integer, "128256", "tokens", 2},
    {"length", OptionKind::Integer, "8192", "positions; model.dims.seq binds shorter sequences", 1},
    {"theta", OptionKind::Real, "500000", "angles are position / theta^(2i / depth)", 1},
    {"epsilon", OptionKind::Real, "1e-5", "of the norms"},
    {"tied", OptionKind::Flag, "true", "the head is the table of tokens"},
};

namespace {

struct Sizes {
  int64_t width, heads, groups, hidden;
  double theta, epsilon;
};

constexpr Init kInit{Init::Kind::Normal, 0, 0.02};

LinearOptions matrix() { return {.bias = false, .weightInit = kInit}; }

Tensor selfAttention(const Scope& scope, Tensor x, const Sizes& sizes) {
  const int64_t depth = sizes.width / sizes.heads;
  const auto heads = [&](const char* name, int64_t count) {
    return reshape(scope, linear(scope.child(name), x, count * depth, matrix()),
                   {x.extent(0), x.extent(1), count, depth});
  };
  Tensor query = heads("q_proj", sizes.heads), key = heads("k_proj", sizes.groups),
         value = heads("v_proj", sizes.groups);
  Tensor y = attention(scope, rotary(scope, query, sizes.theta), rotary(scope, key, sizes.theta),
                       value, {.causal = true});
  return linear(scope.child("o_proj"), reshape(scope, y, x.shape()), sizes.width, matrix());
}

Tensor block(const Scope& scope, Tensor x, const Sizes& sizes) {
  Tensor normed = rmsNorm(scope.child("input_layernorm"), x, sizes.epsilon);
  x = add(scope, x, selfAttention(scope.child("self_attn"), normed, sizes));
  normed = rmsNorm(scope.child("post_attention_layernorm"), x, sizes.epsilon);
  return add(scope, x,
             swiGluBlock(scope.child("mlp"), normed, sizes.hidden,
                         {.gate = "gate_proj",
                          .up = "up_proj",
                          .down = "down_proj",
                          .inOptions = matrix(),
                          .downOptions = matrix()}));
}

void build(Model& model, const OptionValues& options) {
  const Sizes sizes = {options.integer("width"),  options.integer("heads"),
                       options.integer("groups"), options.integer("hidden"),
                       options.real("theta"),     options.real("epsilon")};
  const int64_t positions = options.integer("length"), vocabulary = options.integer("vocab");
  if (sizes.width % sizes.heads != 0)
    return model.fail(fmt::format("heads = {} do not divide width = {}", sizes.heads, sizes.width));
  if (sizes.heads % sizes.groups != 0)
    return model.fail(
        fmt::format("groups = {} do not divide heads = {}", sizes.groups, sizes.heads));
  if (sizes.width / sizes.heads % 2 != 0)
    return model.fail(fmt::format("width / heads = {} is odd: positions turn pairs of elements",
                                  sizes.width / sizes.heads));
  const Scope root = model.root(), body = root.child("model");
  const bool tied = options.flag("tied");
  Tensor ids = tokenInput(model, positions);
  const Scope tokens = body.child("embed_tokens");
  Tensor table = tokenTable(tokens, vocabulary, sizes.width, kInit, tied);
  Tensor x = lookUp(tokens, table, ids);
  for (int64_t i = 0; i < options.integer("layers"); ++i)
    x = block(body.child("layers").child(i), x, sizes);
  x = rmsNorm(body.child("norm"), x, sizes.epsilon);
  const Scope head = root.child("lm_head");
  model.output("logits", tied ? project(head, x, table) : linear(head, x, vocabulary, matrix()));
}

void suggest(Recipe& recipe, const OptionValues& options) {
  suggestForText(recipe, options, 3e-4, {"*norm.weight"});
}

} // namespace

const KnownModel llamaModel = {"llama", "Llama's family; the defaults have the sizes of 3.2 1B",
                               kOptions, build, suggest};

} // namespace titan::nn
