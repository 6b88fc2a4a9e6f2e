// The layers that models are built of. Each takes the scope that it stands in, whose path is its
// module, and whose parameters are called as PyTorch calls them (`weight`, `bias`, ...).
//
// Where shapes do not fit, the model's error has the path, the shapes and what was expected, and
// the result has no value. Shapes below are [batch, ...]; images have channels last.
#pragma once

#include "frontend/nn/Model.h"

#include <optional>

namespace titan::nn {

//===--- elementwise ---===//

/// Of equal shapes; or `b` has the last dimensions of `a`, and is repeated over the others.
Tensor add(const Scope& scope, Tensor a, Tensor b);
Tensor sub(const Scope& scope, Tensor a, Tensor b);
Tensor mul(const Scope& scope, Tensor a, Tensor b);
Tensor scale(const Scope& scope, Tensor x, double factor);
Tensor relu(const Scope& scope, Tensor x);
Tensor tanh(const Scope& scope, Tensor x);
Tensor sigmoid(const Scope& scope, Tensor x);
/// x * sigmoid(x)
Tensor silu(const Scope& scope, Tensor x);

enum class GeluForm { Exact, Tanh };
/// x times the normal distribution up to x (Hendrycks and Gimpel, arXiv:1606.08415), or its
/// approximation by tanh.
Tensor gelu(const Scope& scope, Tensor x, GeluForm form = GeluForm::Exact);

/// Each element is 0 with probability `p`, in [0, 1), in training; the others are divided by
/// 1 - p. Evaluation has no dropout. With p = 0 it is `x` itself.
Tensor dropout(const Scope& scope, Tensor x, double p);

//===--- movement and sums ---===//

/// The same elements in the same order; one extent may be -1.
Tensor reshape(const Scope& scope, Tensor x, const Shape& shape);
/// Dimension i of the result is dimension `permutation[i]` of `x`.
Tensor transpose(const Scope& scope, Tensor x, const Shape& permutation);
/// `count` elements along `dim` from `begin` on.
Tensor slice(const Scope& scope, Tensor x, int64_t dim, int64_t begin, int64_t count);
Tensor concat(const Scope& scope, const std::vector<Tensor>& values, int64_t dim);
/// Over `dims`, which are dropped.
Tensor sum(const Scope& scope, Tensor x, const Shape& dims);
Tensor mean(const Scope& scope, Tensor x, const Shape& dims);
/// Along `dim`.
Tensor softmax(const Scope& scope, Tensor x, int64_t dim = -1);
/// [N, C, space...] to [N, space..., C].
Tensor channelsLast(const Scope& scope, Tensor x);

//===--- linear layers and tables ---===//

/// How a matrix lies in memory, and in checkpoints.
enum class MatrixLayout {
  OutIn, ///< [outputs, inputs], as torch.nn.Linear
  InOut, ///< [inputs, outputs], as transformers' Conv1D
};

struct LinearOptions {
  bool bias = true;
  MatrixLayout layout = MatrixLayout::OutIn;
  std::optional<Init> weightInit; ///< default: Init::fanIn of the inputs
  std::optional<Init> biasInit;   ///< default: zeros
};

/// [..., inputs] to [..., outputs] by `weight` and `bias`.
Tensor linear(const Scope& scope, Tensor x, int64_t outputs, const LinearOptions& options = {});
/// The same with a matrix [outputs, inputs] that is there: that of a table, for a tied head.
Tensor project(const Scope& scope, Tensor x, Tensor weight);
/// Rows of `table` [rows, ...] at integer `indices` [...]: [..., rest of the table].
Tensor lookUp(const Scope& scope, Tensor table, Tensor indices);
/// The same of a table `weight` [rows, width] of its own.
Tensor embedding(const Scope& scope, Tensor indices, int64_t rows, int64_t width,
                 Init init = Init::table());

//===--- norms ---===//

struct NormOptions {
  double epsilon = 1e-5;
  bool bias = true; ///< of layerNorm and groupNorm
};

/// Over the last dimension, by `weight` and `bias` (Ba et al., arXiv:1607.06450).
Tensor layerNorm(const Scope& scope, Tensor x, const NormOptions& options = {});
/// x / sqrt(mean of x^2 + epsilon) over the last dimension, by `weight` (Zhang and Sennrich,
/// arXiv:1910.07467).
Tensor rmsNorm(const Scope& scope, Tensor x, double epsilon = 1e-5);
/// Of [N, space..., C]: over space and the channels of each of `groups` (Wu and He,
/// arXiv:1803.08494).
Tensor groupNorm(const Scope& scope, Tensor x, int64_t groups, const NormOptions& options = {});

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1; ///< of the newest statistic in the running ones
};

/// Of [..., C]: by each microbatch's statistics in training, by running ones (`running_mean`,
/// `running_var`, `num_batches_tracked`) in evaluation (Ioffe and Szegedy, arXiv:1502.03167).
Tensor batchNorm(const Scope& scope, Tensor x, const BatchNormOptions& options = {});

//===--- attention ---===//

struct AttentionOptions {
  bool causal = false;
  std::optional<double> scale; ///< default: 1 / sqrt(depth of a head)
  double dropout = 0;          ///< of probabilities
};

/// query [N, T, H, D], key and value [N, S, G, D]: [N, T, H, D]. Heads of the query share those of
/// the key in groups of H / G (Vaswani et al., arXiv:1706.03762; Ainslie et al., arXiv:2305.13245).
Tensor attention(const Scope& scope, Tensor query, Tensor key, Tensor value,
                 const AttentionOptions& options = {});
/// [N, T, H, D] with elements i and i + D / 2 of each head turned by position * theta^(-2i / D)
/// (Su et al., arXiv:2104.09864). Angles are f32, as in PyTorch's models.
Tensor rotary(const Scope& scope, Tensor x, double theta = 10000);

//===--- blocks of two or three linear layers ---===//

struct GeluBlockOptions {
  std::string up = "up", down = "down"; ///< names of the layers
  GeluForm form = GeluForm::Exact;
  LinearOptions upOptions, downOptions;
};

/// down(gelu(up(x))), `hidden` wide between them.
Tensor geluBlock(const Scope& scope, Tensor x, int64_t hidden,
                 const GeluBlockOptions& options = {});

struct SwiGluOptions {
  std::string gate = "gate", up = "up", down = "down"; ///< names of the layers
  LinearOptions inOptions, downOptions;                ///< `inOptions` are of gate and up
};

/// down(silu(gate(x)) * up(x)) (Shazeer, arXiv:2002.05202).
Tensor swiGluBlock(const Scope& scope, Tensor x, int64_t hidden, const SwiGluOptions& options = {});

//===--- windows ---===//

struct ConvolutionOptions {
  Shape strides, padding, dilations; ///< one for each space dimension; empty: 1, 0, 1
  int64_t groups = 1;
  bool bias = true;
  std::optional<Init> weightInit; ///< default: Init::fanIn of a kernel
};

/// [N, space..., C] by `weight` [outputs, C / groups, kernel...] and `bias`: [N, positions...,
/// outputs].
Tensor convolution(const Scope& scope, Tensor x, int64_t outputs, const Shape& kernel,
                   const ConvolutionOptions& options = {});

struct PoolOptions {
  Shape strides; ///< empty: the window
  Shape padding; ///< empty: 0
};

/// The largest element of each window of [N, space..., C].
Tensor maxPool(const Scope& scope, Tensor x, const Shape& window, const PoolOptions& options = {});
/// The mean of each window; padding counts as zeros, as in PyTorch.
Tensor averagePool(const Scope& scope, Tensor x, const Shape& window,
                   const PoolOptions& options = {});

} // namespace titan::nn
