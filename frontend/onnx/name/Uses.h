// What a tensor of the file is used for: the basis of its kind, its name and its initial
// distribution.
#pragma once

#include "frontend/onnx/name/Scopes.h"

#include <set>

namespace titan::frontend {

/// The part that an operand plays in its op.
enum class Role {
  Weight,      ///< matrix or kernel of a contraction or convolution
  Bias,        ///< added
  NormScale,   ///< scale of a normalisation
  NormBias,    ///< bias of a normalisation
  Statistic,   ///< running mean or variance
  ClassWeight, ///< what each class counts in a loss: no gradient passes there in PyTorch
  Embedding,   ///< table that rows are gathered from
  Other,
};

struct Use {
  size_t node = 0, operand = 0;
  Role role = Role::Other;
  int64_t fanIn = 0; ///< inputs that one output of a Weight sums over; 0: unknown
  bool transposed =
      false; ///< of a Weight of rank 2: the file has [in, out], where a Linear has [out, in]
};

struct TensorUses {
  std::vector<Use> uses;                  ///< in graph order, through Identity and Transpose
  std::vector<std::string> identityNames; ///< names that Identity nodes give it
  bool differentiable = false;            ///< a float path leads from it to an output
  bool onlyAngles =
      false; ///< what it does is the argument of a Cos or Sin that no input is part of
  bool indexedByInput = false; ///< values of an input say which of its rows are read
};

/// What operand `operand` of `node`, a tensor of `rank`, is to it.
Role roleOf(const Node& node, size_t operand, size_t rank);

/// The paths that gradients take from the outputs of a graph back.
class GradientPaths {
public:
  explicit GradientPaths(const Graph& graph);

  bool reach(const std::string& value) const { return values_.contains(value); }
  /// Does one lead through this operand? None does where the op reads only its shape or type, or
  /// compares it, and through a detach().
  bool leadThrough(const Node& node, size_t operand) const;

private:
  std::set<std::string> values_;
};

/// By initializer.
std::map<std::string, TensorUses> findUses(const Graph& graph);

} // namespace titan::frontend
