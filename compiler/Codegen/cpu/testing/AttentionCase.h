// The attention routine described in a few lines, its data, and its definition in f64.
#pragma once

#include "compiler/Codegen/cpu/testing/KernelRunner.h"

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
};

/// Tensors [batch, row, head, width] by name: query, key, value, dresult, mask; result,
/// logSumExp and, with a mask of numbers, largest [batch, head, query]; dquery, dkey, dvalue.
using AttentionTensors = std::map<std::string, std::vector<double>>;

class AttentionCase {
public:
  /// With another matrix unit than the target's where one is given.
  explicit AttentionCase(AttentionSpec spec, std::string_view arch = "native",
                         std::optional<MatrixUnitKind> unit = {});

  const AttentionSpec& spec() const { return spec_; }
  bool keepsLargest() const {
    return spec_.mask == AttentionSpec::Mask::Additive || spec_.fill != 0;
  }
  /// Random; to be changed before a run.
  AttentionTensors inputs;

  /// What the routine writes, called for at most `step` units at a time. Backward runs on what
  /// forward gives.
  AttentionTensors forward(int64_t step = 0) const;
  AttentionTensors backward(int64_t step = 0) const;
  /// The definition (dialects/Titan/ops/Attention.td), every value in f64.
  AttentionTensors reference() const;

  /// Seconds that compiling and loading both routines took.
  double compileSeconds = 0;
  /// Seconds of the fastest of `repeats` runs on one thread.
  double seconds(bool isBackward, int repeats) const;
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

  Call call(bool isBackward) const;
  View view(const std::string& name, size_t operand) const;
  std::vector<View> projection(const std::string& prefix, std::vector<Operand>& operands) const;
  std::vector<std::string> run(bool isBackward, int64_t step, const AttentionTensors& tensors,
                               int repeats, double* seconds) const;
  AttentionTensors unpack(bool isBackward, const std::vector<std::string>& outs) const;
  /// Of one query and key; 0 without a mask.
  double mask(int64_t b, int64_t h, int64_t i, int64_t j) const;
  double score(int64_t b, int64_t h, int64_t i, int64_t j) const;
  int64_t elementsOfWindow() const;
  double dropoutFactor(int64_t b, int64_t h, int64_t i, int64_t j) const;

  AttentionSpec spec_;
  std::unique_ptr<KernelRunner> runner_;
};

} // namespace titan::codegen::testing
