// The attention routine described in a few lines, its data, and its definition in f64.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace titan::codegen::testing {

struct AttentionSpec {
  int64_t batch = 1, queries = 16, keys = 0 /* as queries */, heads = 1,
          keyHeads = 0 /* as heads */, width = 16, valueWidth = 0 /* as width */;
  std::string element = "f32";
  double scale = 0; ///< 0: 1 / sqrt(width)
  bool causal = false;
  enum class Mask { None, Boolean, Additive } mask = Mask::None;
  double fill = 0; ///< what a boolean mask writes over scores; 0: it forbids
  bool maskBatch = true, maskHeads = true, maskRows = true; ///< false: broadcast
  double p = 0;
  /// The dimension in which the probabilities are a part of a tensor of twice the extent, and where
  /// it begins in it.
  int64_t window = -1, microbatch = 0;
  /// Blocks of the routines, where heads are no wider than 256 (forward) or 128 (backward), else
  /// with `rowsOfWide`; never more keys than rows.
  int64_t rows = 64, rowsOfWide = 32, blockKeys = 64, padding = 16;
  /// The backward routine has a workspace where it needs none, too.
  bool hasWorkspace = false;
  /// Query, key and value are parts of one [batch, row, ...] tensor, and so are their adjoints.
  bool isPacked = false;
  /// Bytes from an aligned address to each operand, a multiple of its elements; none: anywhere.
  std::optional<int64_t> offset = {};
};

/// Tensors [batch, row, head, width] by name: query, key, value, dresult, mask; result,
/// logSumExp and, with a mask of numbers, largest [batch, head, query]; dquery, dkey, dvalue.
using AttentionTensors = std::map<std::string, std::vector<double>>;

class AttentionProblem {
public:
  /// With inputs, unless it is too large for them.
  explicit AttentionProblem(AttentionSpec spec, bool hasInputs = true);

  const AttentionSpec& spec() const { return spec_; }
  bool keepsLargest() const {
    return spec_.mask == AttentionSpec::Mask::Additive || spec_.fill != 0;
  }
  /// Random; to be changed before a run.
  AttentionTensors inputs;

  /// Two functions of a kernel.call each: forward, backward.
  std::string moduleText() const;
  /// Bytes of ins, then of outs, each with `guard` bytes behind it that hold `filler`, as do outs.
  std::vector<std::string> buffers(bool isBackward, const AttentionTensors& tensors,
                                   size_t guard = 0, char filler = 0) const;
  size_t countIns(bool isBackward) const { return call(isBackward).ins.size(); }
  /// What the call says and what its code shares with calls of other streams.
  std::vector<int64_t> scalars() const;
  /// Tensors from the bytes of outs.
  AttentionTensors unpack(bool isBackward, const std::vector<std::string>& outs) const;
  /// The definition (dialects/Titan/ops/Attention.td), every value in f64.
  AttentionTensors reference() const;
  /// Two for each multiply-add of what is attended to.
  double flops(bool isBackward) const;

private:
  /// A tensor inside of a buffer.
  struct View {
    std::string name;
    size_t operand;
    int64_t offset, batchStride, rowStride, heads, width, rows;
    std::string text() const;
  };
  struct Operand {
    std::string element;
    int64_t elements;
  };
  struct Call {
    std::vector<Operand> ins, outs;
    std::vector<View> views, outViews; ///< in the attribute's order
    std::string routine;               ///< #kernel.attention<...>
  };

  void drawInputs();
  Call call(bool isBackward) const;
  View view(const std::string& name, size_t operand) const;
  std::vector<View> projection(const std::string& prefix, std::vector<Operand>& operands) const;
  /// Of one query and key; 0 without a mask.
  double mask(int64_t b, int64_t h, int64_t i, int64_t j) const;
  double score(int64_t b, int64_t h, int64_t i, int64_t j) const;
  int64_t elementsOfWindow() const;
  double dropoutFactor(int64_t b, int64_t h, int64_t i, int64_t j) const;

  AttentionSpec spec_;
};

/// Fails the test unless all `found` are `expected` within tolerance * the largest of a tensor.
void expectClose(const AttentionTensors& found, const AttentionTensors& expected, double tolerance);

} // namespace titan::codegen::testing
