// Residual networks (He et al., arXiv:1512.03385), with the names, layouts and initial weights of
// torchvision: in blocks of three convolutions the second one has the stride.
#include "frontend/nn/Layers.h"
#include "frontend/nn/Models.h"

#include <cmath>

namespace titan::nn {

static constexpr Option kOptions[] = {
    {"depth", OptionKind::Integer, "18", "layers with weights", 0, "18|34|50|101|152"},
    {"classes", OptionKind::Integer, "1000", "outputs", 1},
    {"channels", OptionKind::Integer, "3", "of an image", 1},
    {"size", OptionKind::Integer, "224", "height and width of an image", 1},
    {"width", OptionKind::Integer, "64", "channels of the first stage", 1},
    {"stem", OptionKind::Word, "large",
     "large: 7x7 and a pool, which leave a quarter of the size; small: 3x3", 0, "large|small"},
};

namespace {

/// Kaiming's normal by the outputs of a kernel, as torchvision draws.
ConvolutionOptions options(int64_t outputs, int64_t kernel, int64_t stride) {
  const auto fanOut = static_cast<double>(outputs * kernel * kernel);
  return {.strides = {stride, stride},
          .padding = {kernel / 2, kernel / 2},
          .bias = false,
          .weightInit = Init::normal(0, std::sqrt(2 / fanOut))};
}

Tensor convolved(const Scope& scope, Tensor x, int64_t outputs, int64_t kernel, int64_t stride) {
  return convolution(scope, x, outputs, {kernel, kernel}, options(outputs, kernel, stride));
}

/// convI and bnI of a block.
Tensor step(const Scope& scope, int64_t i, Tensor x, int64_t outputs, int64_t kernel,
            int64_t stride) {
  Tensor y = convolved(scope.child(fmt::format("conv{}", i)), x, outputs, kernel, stride);
  return batchNorm(scope.child(fmt::format("bn{}", i)), y);
}

/// Of two convolutions (figure 5, left) or three, of which the last one has four times the width.
Tensor block(const Scope& scope, Tensor x, int64_t width, int64_t stride, bool deep) {
  Tensor y;
  if (deep) {
    y = relu(scope, step(scope, 1, x, width, 1, 1));
    y = relu(scope, step(scope, 2, y, width, 3, stride));
    y = step(scope, 3, y, 4 * width, 1, 1);
  } else {
    y = relu(scope, step(scope, 1, x, width, 3, stride));
    y = step(scope, 2, y, width, 3, 1);
  }
  if (stride != 1 || x.extent(-1) != y.extent(-1)) {
    const Scope shortcut = scope.child("downsample");
    x = batchNorm(shortcut.child(1), convolved(shortcut.child(0), x, y.extent(-1), 1, stride));
  }
  return relu(scope, add(scope, y, x));
}

struct Blocks {
  int64_t depth;
  bool deep;
  int64_t counts[4];
};

constexpr Blocks kBlocks[] = {{18, false, {2, 2, 2, 2}},
                              {34, false, {3, 4, 6, 3}},
                              {50, true, {3, 4, 6, 3}},
                              {101, true, {3, 4, 23, 3}},
                              {152, true, {3, 8, 36, 3}}};

void build(Model& model, const OptionValues& options) {
  const Scope root = model.root();
  const int64_t size = options.integer("size"), width = options.integer("width");
  const bool large = options.text("stem") == "large";
  const Blocks& blocks =
      *std::find_if(std::begin(kBlocks), std::end(kBlocks),
                    [&](const Blocks& some) { return some.depth == options.integer("depth"); });
  Tensor images = model.input("images", DType::F32, {options.integer("channels"), size, size});
  const Scope stem = root.child("conv1");
  Tensor x = convolved(stem, channelsLast(stem, images), width, large ? 7 : 3, large ? 2 : 1);
  x = relu(root.child("relu"), batchNorm(root.child("bn1"), x));
  if (large)
    x = maxPool(root.child("maxpool"), x, {3, 3}, {.strides = {2, 2}, .padding = {1, 1}});
  for (int64_t stage = 0; stage < 4; ++stage)
    for (int64_t i = 0; i < blocks.counts[stage]; ++i)
      x = block(root.child(fmt::format("layer{}", stage + 1)).child(i), x, width << stage,
                stage > 0 && i == 0 ? 2 : 1, blocks.deep);
  x = mean(root.child("avgpool"), x, {1, 2});
  const double bound = 1 / std::sqrt(static_cast<double>(x.extent(-1)));
  model.output("logits", linear(root.child("fc"), x, options.integer("classes"),
                                {.weightInit = Init::uniform(-bound, bound),
                                 .biasInit = Init::uniform(-bound, bound)}));
}

void suggest(Recipe& recipe, const OptionValues&) {
  recipe.optimizer.kind = "sgd";
  recipe.optimizer.lr = 0.1;
  recipe.optimizer.momentum = 0.9;
  recipe.optimizer.weightDecay = 1e-4;
  recipe.optimizer.noDecay = {};
  recipe.schedule.kind = "cosine";
  recipe.batch.micro = recipe.batch.global = 32;
  recipe.data.train = {"train.npz"};
}

} // namespace

const KnownModel resnetModel = {"resnet", "residual networks of 18 to 152 layers", kOptions, build,
                                suggest};

} // namespace titan::nn
